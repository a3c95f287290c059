// The judge alone: what the ranks of a scenario asked for is recorded, the engine is forgotten, and the judge comes to
// the same verdict from the record.
//
//   ROLLCALL_VERBOSE=1 build/dev/rollcall_tests '[recorded-judge]'    lists the scenarios that are left out, and why

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "scenarios/run/interpreter.h"
#include "scenarios/run/run_state.h"
#include "scenarios/scenario.h"
#include "sim/check/judge.h"
#include "sim/engine/simulate.h"
#include "tests/conformance/tape_replay.h"

namespace rollcall::conformance {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> shipped_scenarios() {
  std::vector<fs::path> files;
  for (const char* folder : {"scenarios", "scenarios/real_hangs"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(ROLLCALL_SOURCE_DIR) / folder)) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(".json") && !name.ends_with(".schema.json")) {
        files.push_back(entry.path());
      }
    }
  }
  std::ranges::sort(files);
  return files;
}

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// What only the engine knows; empty when ops say it all.
std::string not_in_ops(const scenario::Scenario& scenario, const Report& report) {
  const Finding* finding = finding_of(report.verdict);
  if (scenario.options.comm_slots > 0) {
    return "how many calls the device runs at once";
  }
  if (std::holds_alternative<DeviceMismatch>(report.verdict)) {
    return "which GPU is whose";
  }
  if (std::holds_alternative<LimitReached>(report.verdict)) {
    return "the limits of the run";
  }
  if (finding != nullptr && (finding->kind == "watchdog_timeout" || finding->kind == "group_not_destroyed")) {
    return "durations and clean-up";
  }
  if (finding != nullptr && finding->at && finding->at->call.op == "monitored_barrier") {
    return "who came to rank 0's door";
  }
  if (scenario.options.timeout > 0 || scenario.options.finished_ranks_exit) {
    return "what happens after a rank noticed";
  }
  return "";
}

struct Answer {
  std::string verdict;
  std::string kind;
  RankSet culprits;
  friend bool operator==(const Answer&, const Answer&) = default;
};

Answer answer(const Verdict& verdict) {
  const Finding* finding = finding_of(verdict);
  return {std::string(verdict_word(verdict)), finding != nullptr ? finding->kind : "",
          finding != nullptr ? finding->culprits : RankSet()};
}

std::string text(const Answer& answer) {
  return fmt::format("{} {} [{}]", answer.verdict, answer.kind, to_string(answer.culprits));
}

}  // namespace

TEST_CASE("the judge alone comes to the engine's verdict from the recorded ops", "[recorded-judge][fiber]") {
  std::size_t compared = 0;
  std::string left_out;
  for (const fs::path& file : shipped_scenarios()) {
    const scenario::Scenario scenario = scenario::parse_scenario(contents(file), file.filename().string());
    OpTape tape(scenario.options.world_size);
    sim::Options options = scenario.options;
    options.decorate = [&](Backend& inner) { return tape_around(inner, tape); };
    scenario::RunState state;
    const Report report = sim::run(
        options, [&](Rank rank) { run_on_tape(tape, [&] { scenario::run_rank(scenario, rank, state); }); });
    if (const std::string reason = not_in_ops(scenario, report); !reason.empty()) {
      left_out += fmt::format("  {}: {}\n", file.filename().string(), reason);
      continue;
    }
    ++compared;
    TapeReplay replay(tape, options.backend);
    INFO(file.filename().string());
    CHECK(text(answer(check::judge(replay.evidence()))) == text(answer(report.verdict)));
  }
  std::cout << fmt::format("judge alone: {} scenarios compared\n", compared)
            << (std::getenv("ROLLCALL_VERBOSE") != nullptr ? left_out : "");
  CHECK(compared > 200);
}

}  // namespace rollcall::conformance
