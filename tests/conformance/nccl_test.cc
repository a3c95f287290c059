// The golden programs again, on nccl: how they end according to NCCL's documentation. These outcomes are not from a
// GPU; tests/data/nccl/outcomes.json says for each row which source it follows from.

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/c10d/forwarding_backend.h"
#include "sim/c10d/rank_context.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"
#include "tests/conformance/golden_case.h"
#include "tests/conformance/programs.h"

namespace rollcall::golden::nccl_test {

namespace {

using nlohmann::json;

// Runs a program written for CPU tensors as if each rank kept its tensors on its own GPU.
class OnGpu final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

  Work issue(const Op& op) override { return inner().issue(moved(op)); }
  std::vector<Work> issue_batch(std::span<const Op> ops) override {
    std::vector<Op> all;
    for (const Op& op : ops) {
      all.push_back(moved(op));
    }
    return inner().issue_batch(all);
  }

 private:
  static Op moved(Op op) {
    op.device = op.device.type == DeviceType::cpu ? this_rank().device : op.device;
    return op;
  }
};

Report run_on_nccl(const GoldenCase& golden, const Program& program) {
  sim::Options options{
      .world_size = golden.world_size,
      .backend = "nccl",
      .torch = golden.torch,
      .debug = golden.detail ? sim::DebugLevel::detail : sim::DebugLevel::off,
      .decorate = [](Backend& inner) { return std::make_unique<OnGpu>(inner); },
  };
  for (std::size_t i = 0; i < program.groups.size(); ++i) {
    options.groups.push_back({.name = "g" + std::to_string(i + 1), .ranks = program.groups[i]});
  }
  const RankLog no_log;
  return sim::run(options, [&](Rank rank) {
    RankNotes notes;
    CaseContext context(rank, golden, no_log, notes);
    program.body(context);
  });
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string outcome_of(const RankClass& state) {
  switch (state.state) {
    case RankClass::State::finished:
      return "completed";
    case RankClass::State::waiting:
      return state.call ? fmt::format("hang: {} {} of {}", state.call->op, state.call->seq, state.call->group)
                        : "hang";
    case RankClass::State::raised:
      return "error: " + first_line(state.exception);
    case RankClass::State::crashed:
      return "crash: " + first_line(state.exception);
    case RankClass::State::running:
      return "running";
  }
  return "running";
}

json row_of(const GoldenCase& golden, const Report& report) {
  json ranks = json::array();
  for (Rank rank = 0; rank < golden.world_size; ++rank) {
    ranks.push_back(outcome_of(report.of(rank)));
  }
  const Finding* finding = finding_of(report.verdict);
  return {{"case", golden.name},
          {"verdict", verdict_word(report.verdict)},
          {"kind", finding == nullptr ? "" : to_string(finding->kind)},
          {"ranks", std::move(ranks)}};
}

// By case; the rows' "why" names a reason that the file explains.
std::map<std::string, json> documented_outcomes() {
  std::ifstream file(std::filesystem::path(ROLLCALL_SOURCE_DIR) / "tests/data/nccl/outcomes.json");
  const json document = json::parse(file);
  std::map<std::string, json> rows;
  for (json row : document.at("outcomes")) {
    INFO(row.dump());
    CHECK(document.at("reasons").contains(row.at("why").get<std::string>()));
    row.erase("why");
    const std::string name = row.at("case");
    CHECK(rows.emplace(name, std::move(row)).second);
  }
  return rows;
}

}  // namespace

TEST_CASE("golden programs do on nccl what NCCL is documented to do", "[fiber][conformance]") {
  std::map<std::string, json> rows = documented_outcomes();
  std::map<std::string, int> counts;
  for (const auto& path : golden_files(golden_folder())) {
    const GoldenCase golden = read_golden_case(path);
    const std::optional<Program> program = has_programs(golden.family) ? find_program(golden) : std::nullopt;
    const auto row = rows.find(golden.name);
    if (!program || row == rows.end()) {
      continue;
    }
    CHECK(row_of(golden, run_on_nccl(golden, *program)) == row->second);
    rows.erase(row);
    ++counts[golden.family];
  }
  for (const auto& [name, row] : rows) {
    FAIL_CHECK(name << ": a row without a case");
  }
  for (const auto& [family, count] : counts) {
    std::cout << fmt::format("{:<10}{:>4} as documented for nccl\n", family, count);
  }
}

}  // namespace rollcall::golden::nccl_test
