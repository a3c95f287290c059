// Recorded and replayed scripts make the same calls as the same programs on real PyTorch.

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "scenarios/format/scenario.h"
#include "scenarios/run/runner.h"
#include "sim/torch/torch_traits.h"
#include "tests/catch.h"
#include "tests/conformance/golden_case.h"
#include "tests/conformance/programs.h"
#include "tests/conformance/recorder.h"
#include "tests/scripts.h"

namespace rollcall::golden::recorded_script_test {
namespace {

using nlohmann::json;

// Golden programs of one world size, as arguments for a script that runs them one after the other.
struct Job {
  std::vector<GoldenCase> cases;
  std::vector<std::string> words;
};
using Jobs = std::map<Rank, Job>;

std::string members(const std::string& group) {
  return group.substr(std::min(group.find('['), group.size()));
}

// Returns the part of a call that can be compared across programs with other values in their tensors and more groups.
json essence(const json& op) {
  json kept = {{"members", members(op.at("g"))}};
  for (const char* key : {"op", "numel", "out_numel", "dtype", "reduce", "root", "peer"}) {
    kept[key] = op.value(key, json());
  }
  if (kept["op"] == "all_reduce_coalesced") {  // scenarios send the same bytes at the same time in one tensor
    kept["op"] = "all_reduce";
    const auto counts = op.at("numel").get<std::vector<std::int64_t>>();
    kept["numel"] = {std::accumulate(counts.begin(), counts.end(), std::int64_t{0})};
  }
  if (kept["op"] == "all_reduce" && kept["reduce"].is_null()) {
    kept["reduce"] = "SUM";  // C++ was called without options
  }
  return kept;
}

json essence(const OpRecord& op) {
  json kept = {{"members", members(op.group)}, {"op", recorded_name(op)}, {"numel", op.numel}};
  kept["out_numel"] = op.out_numel ? json(*op.out_numel) : json();
  kept["dtype"] = op.dtype ? json(to_string(*op.dtype)) : json();
  kept["reduce"] = op.reduce ? json(to_string(*op.reduce)) : json();
  kept["root"] = op.root ? json(*op.root) : json();
  kept["peer"] = op.peer ? json(*op.peer) : json();
  return kept;
}

// Returns the calls of all ranks. A program that receives from any source is run again, in another order; that run does
// not count here.
RunLog replay(const std::string& text) {
  const scenario::Scenario scenario = scenario::parse_scenario(text, "recorded.json");
  RunLog log(static_cast<std::size_t>(scenario.options.world_size));
  RunLog repeated = log;
  std::size_t ranks = 0;
  scenario::run(scenario, {.seed = {}, .timeline = false, .decorate = [&](Backend& inner) {
                             return std::make_unique<Recorder>(inner, ranks++ < log.size() ? log : repeated);
                           }});
  return log;
}

// Checks that every rank's calls are those of the golden programs, one program after the other.
void compare(const std::vector<GoldenCase>& cases, const RunLog& log) {
  for (std::size_t rank = 0; rank < log.size(); ++rank) {
    const std::vector<OpRecord>& ops = log[rank].ops;
    std::size_t next = 0;
    for (const GoldenCase& golden : cases) {
      INFO(golden.name << ", rank " << rank);
      for (const json& expected : golden.document->at("ranks").at(rank).at("ops")) {
        INFO("call " << expected.at("i"));
        REQUIRE(next < ops.size());
        REQUIRE(essence(ops[next++]) == essence(expected));
      }
    }
    CHECK(next == ops.size());
  }
}

void check(const std::string& name, Rank world_size, const Job& job) {
  const test::Shell shell;
  const test::Outcome outcome =
      shell.rollcall(fmt::format("record --simulate -n {} -o out.json {} {}", world_size, test::script(name),
                                 fmt::join(job.words, " ")));
  INFO(fmt::format("{} on {} ranks: {}\n{}{}", name, world_size, fmt::join(job.words, " "), outcome.out,
                   outcome.err));
  compare(job.cases, replay(test::contents(shell.path("out.json"))));
}

// True if another program can begin where this one has ended. If ranks raise, that is so only if they raise at the same
// call.
bool ends_in_step(const GoldenCase& golden) {
  const json& ranks = golden.document->at("ranks");
  const auto completes = [](const json& rank) { return rank.at("outcome") == "completed"; };
  const auto raises = [&](const json& rank) {
    return rank.at("outcome") == "error" && rank.at("ops").size() == ranks.at(0).at("ops").size();
  };
  return std::ranges::all_of(ranks, completes) || std::ranges::all_of(ranks, raises);
}

// Returns the folder with the real runs of the same release.
std::filesystem::path folder_of_this_torch() {
  const std::optional<TorchRelease> release = parse_torch_release(test::recorded_torch());
  REQUIRE(release.has_value());
  const std::vector<std::filesystem::path> folders = golden_folders();
  return folders.at(std::min(folders.size() - 1, static_cast<std::size_t>(*release)));
}

Jobs jobs_of(const std::set<std::string>& families,
             const std::function<std::string(const GoldenCase&, const std::filesystem::path&)>& word_for) {
  Jobs jobs;
  for (const std::filesystem::path& path : golden_files(folder_of_this_torch())) {
    GoldenCase golden = read_golden_case(path);
    const bool fits = families.contains(golden.family) && !golden.debug && golden.timeout == 0;
    const std::string word = fits && ends_in_step(golden) ? word_for(golden, path) : "";
    if (!word.empty()) {
      Job& job = jobs[golden.world_size];
      job.cases.push_back(std::move(golden));
      job.words.push_back(word);
    }
  }
  return jobs;
}

// True if the program does only what its parameters say.
bool is_training(const GoldenCase& golden) {
  if (golden.family == "tally") {
    return true;
  }
  const std::optional<Program> program = find_program(golden);
  const auto* body = program ? program->body.target<void (*)(CaseContext&)>() : nullptr;
  return body != nullptr && *body == ddp_program;
}

// "all_reduce:MAX:float32:4", "even_exchanges:uint8:4,5/6,6", "broadcast"
std::string primitive(const GoldenCase& golden) {
  if (golden.params.has("sizes")) {
    std::vector<std::string> rows;
    for (const std::vector<std::int64_t>& row : golden.params.table("sizes")) {
      rows.push_back(fmt::format("{}", fmt::join(row, ",")));
    }
    return fmt::format("even_exchanges:{}:{}", golden.params.text("dtype"), fmt::join(rows, "/"));
  }
  if (golden.params.has("op")) {
    return fmt::format("all_reduce:{}:{}:{}", golden.params.text("op"), golden.params.text("dtype"),
                       golden.params.integer("numel"));
  }
  return golden.name.substr(golden.name.find('_') + 1);
}

}  // namespace

TEST_CASE("recorded trainings ask for what they ask for on real PyTorch", "[record][conformance]") {
  if (!test::has_torch()) {
    return;
  }
  const Jobs jobs = jobs_of({"tally", "ddp", "zero"}, [](const GoldenCase& golden, const auto& path) {
    return is_training(golden) ? fmt::format("'{}'", path.string()) : "";
  });
  for (const auto& [world_size, job] : jobs) {
    check("train", world_size, job);
  }
}

TEST_CASE("recorded primitives ask for what they ask for on real PyTorch", "[record][conformance]") {
  if (!test::has_torch()) {
    return;
  }
  const Jobs jobs = jobs_of({"prim", "p2p"}, [](const GoldenCase& golden, const auto&) {
    // A message that no rank waits for would meet the next receive. A drawn program has no script that does the same.
    return golden.name == "p2p_isend_unreceived" || golden.params.has("script") ? "" : primitive(golden);
  });
  for (const auto& [world_size, job] : jobs) {
    check("primitives", world_size, job);
  }
}

TEST_CASE("recorded tutorial scripts ask for what they asked for on real PyTorch", "[record][conformance]") {
  if (!test::has_torch()) {
    return;
  }
  struct Script {
    std::string name;  // of tests/scripts
    std::string arguments;
    std::string golden;
  };
  const std::vector<Script> scripts = {
      {"counter", "5,6 1", "tally/tally_tutorial_sync"},
      {"counter", "5,6 0", "tally/tally_tutorial_nosync"},
      {"join_ddp", "2,4", "ddp/ddp_linear_w2"},
      {"join_ddp", "2,4 --zero", "zero/ddp_zero_sgd_w2"},
      {"join_ddp", "2,3 --no-join", "ddp/ddp_plain_uneven"},
  };
  for (const Script& script : scripts) {
    if (!std::filesystem::exists(folder_of_this_torch() / (script.golden + ".json"))) {
      continue;  // not every program has been run on every release
    }
    const GoldenCase golden = read_golden_case(folder_of_this_torch() / (script.golden + ".json"));
    INFO(script.name << ' ' << script.arguments);
    const test::Shell shell;
    const test::Outcome outcome =
        shell.rollcall(fmt::format("record --simulate -n {} -o out.json {} {}", golden.world_size,
                                   test::script(script.name), script.arguments));
    INFO(outcome.err);
    compare({golden}, replay(test::contents(shell.path("out.json"))));
  }
}

}  // namespace rollcall::golden::recorded_script_test
