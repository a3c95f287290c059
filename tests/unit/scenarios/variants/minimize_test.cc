// Scenarios made smaller: their outcome stays, everything else goes.

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/format/scenario.h"
#include "scenarios/run/runner.h"
#include "scenarios/variants/keep_ranks.h"
#include "scenarios/variants/minimize.h"
#include "scenarios/variants/reducer.h"
#include "tests/catch.h"
#include "tests/folder.h"

namespace rollcall::scenario::minimize_test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> scenarios_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(ROLLCALL_SOURCE_DIR "/" + folder)) {
    const std::string file = entry.path().string();
    if (file.ends_with(".json") && !file.ends_with(".fixed.json")) {
      files.push_back(file);
    }
  }
  std::ranges::sort(files);
  return files;
}

// 64 ranks train three epochs with DDP and ZeRO, and log and save now and then. Rank 37 has one input less.
std::string large_job() {
  OrderedJson job = OrderedJson::parse(R"({
    "version": 1, "name": "large job", "world_size": 64, "backend": "nccl",
    "objects": {
      "model": {"kind": "ddp", "parameters": [{"name": "a", "numel": 1000}, {"name": "b", "numel": 2000},
                                              {"name": "c", "numel": 500}, {"name": "d", "numel": 100}]},
      "optimizer": {"kind": "zero", "of": "model", "optimizer": "adam", "lr": 0.01}
    },
    "program": [
      {"barrier": {}},
      {"for": "epoch", "in": [0, 3], "do": [
        {"all_reduce": {"numel": 4, "label": "begin"}},
        {"for_each_input": "x", "do": [
          {"compute": "1ms"},
          {"forward": "model"}, {"backward": "model"}, {"step": "optimizer"},
          {"if": "x % 5 == 0", "do": [{"all_reduce": {"numel": 1, "label": "log"}}]}
        ]},
        {"all_gather": {"numel": 8, "label": "metrics"}},
        {"if": "rank == 0", "do": [{"compute": "2ms"}]},
        {"barrier": {"label": "save"}}
      ]}
    ]})");
  job["inputs"] = std::vector<int>(64, 20);
  job["inputs"][37] = 19;
  return job.dump();
}

Signature signature_of_text(const std::string& text) {
  const Report report = run(parse_scenario(text, "small.json"));
  CHECK(report.unmet.empty());
  return signature_of(report);
}

// Writes the file and returns its path.
std::string written(const test::Folder& folder, const std::string& name, const std::string& text) {
  folder.write(name, text);
  return folder.path(name);
}

}  // namespace

TEST_CASE("a large job that fails shrinks to three ranks and a few statements", "[minimize][fiber]") {
  const test::Folder folder;
  const std::string file = written(folder, "large.json", large_job());
  const Minimized result = minimize(file, {});
  CHECK(result.before.ranks == 64);
  CHECK(result.after.ranks <= 3);
  CHECK(result.after.statements <= 10);
  CHECK(signature_of_text(result.text) == result.signature);
  CHECK(minimize(file, {}).text == result.text);
}

TEST_CASE("hangs of real jobs keep what they are when they are minimized", "[minimize][fiber]") {
  int minimized = 0;
  for (const std::string& file : scenarios_in("scenarios/real_hangs")) {
    INFO(file);
    const Report report = run(load_scenario(file));
    if (finding_of(report.verdict) == nullptr) {
      CHECK_THROWS_AS(minimize(file, {}), NothingToMinimize);
      continue;
    }
    const Minimized result = minimize(file, {});
    CHECK(result.signature == signature_of(report));
    CHECK(signature_of_text(result.text) == result.signature);
    CHECK(result.after.ranks <= result.before.ranks);
    CHECK(result.after.statements <= result.before.statements);
    ++minimized;
  }
  CHECK(minimized >= 80);
}

TEST_CASE("what only some schedules come to is minimized as well", "[minimize][fiber]") {
  const Minimized result = minimize(ROLLCALL_SOURCE_DIR "/tests/data/explore/key_comes_late.json", {});
  CHECK(result.signature.verdict == "race");
  CHECK(result.signature.kind == FindingKind::stale_key);
  CHECK(result.after.statements <= 5);
  CHECK_THAT(result.text, Contains("rollcall explore"));
}

TEST_CASE("a failure that needs another schedule still needs one when it is minimized", "[minimize][fiber]") {
  int minimized = 0;
  for (const std::string& file : scenarios_in("tests/data/explore")) {
    CAPTURE(file);
    if (finding_of(run(load_scenario(file)).verdict) != nullptr) {
      continue;
    }
    try {
      const Minimized result = minimize(file, {});
      CHECK(finding_of(run(parse_scenario(result.text, file)).verdict) == nullptr);
      ++minimized;
    } catch (const NothingToMinimize&) {
      // no schedule fails
    }
  }
  CHECK(minimized >= 3);
}

// With calls left out of its main hook, ranks shadow each other's notifications for ever. On Gloo nothing stops them.
TEST_CASE("a failure that ends by itself is not minimized to one that does not", "[minimize][fiber]") {
  const test::Folder folder;
  const std::string file = written(folder, "joined.json", R"({
    "version": 1, "name": "joined", "world_size": 4, "backend": "gloo", "inputs": {"base": 1, "per_rank": 1},
    "objects": {"counter": {"kind": "joinable", "forward": [{"all_reduce": {"numel": 8, "value": 1}}],
                            "main_hook": [{"all_reduce": {"numel": 8, "value": 0}}, {"barrier": {}}]}},
    "program": [
      {"for_each_input": "i", "do": [{"barrier": {}}]},
      {"join": ["counter"], "do": [{"for_each_input": "batch", "do": [{"forward": "counter"}]}]}
    ]})");
  Scenario smaller = parse_scenario(minimize(file, {}).text, "small.json");
  smaller.options.limits.ops = 10'000;
  for (const RankClass& ranks : run(smaller).ranks) {
    CHECK(ranks.state != RankClass::State::running);
  }
}

TEST_CASE("an exception is not minimized to one of another type", "[minimize][fiber]") {
  const test::Folder folder;
  const std::string file = written(folder, "bad.json", R"({
    "version": 1, "name": "bad", "world_size": 2, "backend": "gloo", "inputs": 1,
    "objects": {"counter": {"kind": "joinable", "forward": [{"raise": {"type": "KeyError", "message": "x"}}]}},
    "program": [{"join": ["counter"], "do": [{"for_each_input": "x", "do": [{"forward": "counter"}]}]}]})");
  const Minimized result = minimize(file, {});
  CHECK(result.signature.role == "raised KeyError");
  CHECK(signature_of_text(result.text) == result.signature);  // Join without an object raises a ValueError
}

TEST_CASE("minimizing ends with the best so far when somebody asks for it", "[minimize][fiber]") {
  const test::Folder folder;
  const std::string file = written(folder, "large.json", large_job());
  volatile std::sig_atomic_t asked = 0;
  MinimizeOptions options{.seed = {}, .progress = {}, .interrupted = &asked};
  options.progress = [&](std::int64_t tried, Rank, std::size_t) { asked = tried >= 5 ? 1 : 0; };
  const Minimized result = minimize(file, options);
  CHECK(result.interrupted);
  CHECK(result.tried == 5);
  CHECK(signature_of_text(result.text) == result.signature);
}

TEST_CASE("what is fine cannot be minimized", "[minimize][fiber]") {
  CHECK_THROWS_WITH(minimize(ROLLCALL_SOURCE_DIR "/scenarios/counter.json", {}),
                    Contains("ends with verdict ok: nothing to minimize"));
}

TEST_CASE("ranks that stay are numbered anew wherever a scenario names them", "[minimize]") {
  const OrderedJson scenario = OrderedJson::parse(R"({
    "world_size": 6, "inputs": [1, 2, 3, 4, 5, 6], "groups": {"a": [1, 4], "b": "0,2", "c": {"ranks": "3-5"}},
    "devices": {"0-2": "cuda:0", "3-5": "cpu"}, "faults": [{"kind": "slow", "ranks": [4], "factor": 2},
    {"kind": "slow", "ranks": "0", "factor": 2}],
    "programs": {"0": [{"barrier": {}}], "1-3": [{"send": {"dst": 4}}],
                 "4-5": [{"if": "rank == 4 && rank != 5 || rank < 4 || rank >= 5",
                          "do": [{"recv": {"src": "rank - 3"}}]}]}
  })");
  const std::optional<OrderedJson> kept = keep_ranks(scenario, {1, 4, 5});
  REQUIRE(kept);
  CHECK(*kept == OrderedJson::parse(R"({
    "world_size": 3, "inputs": [2, 5, 6], "groups": {"a": [0, 1], "c": {"ranks": [1, 2]}},
    "devices": {"0": "cuda:0", "1-2": "cpu"}, "faults": [{"kind": "slow", "ranks": [1], "factor": 2}],
    "programs": {"0": [{"send": {"dst": 1}}],
                 "1-2": [{"if": "rank == 1 && rank != 2 || rank < 1 || rank >= 2",
                          "do": [{"recv": {"src": "rank - 3"}}]}]}
  })"));
  CHECK_FALSE(keep_ranks(scenario, {1, 2}));  // they send to a rank that would be missing
}

TEST_CASE("reducing takes away what is not asked for", "[minimize]") {
  OrderedJson tree = OrderedJson::parse(
      R"({"program": [{"a": 1}, {"repeat": 40, "do": [{"b": 2}, {"c": {"numel": 1000, "label": "x"}}]}, {"d": 4}]})");
  const Accepts keeps_c = [](const OrderedJson& candidate) {
    const std::string text = candidate.dump();
    return text.find("\"c\"") != std::string::npos && text.find("numel") != std::string::npos;
  };
  bool changed = true;
  while (changed) {
    changed = shorten_lists(tree, keeps_c);
    changed = unwrap_blocks(tree, keeps_c) || changed;
    changed = drop_members(tree, keeps_c) || changed;
    changed = shrink_numbers(tree, keeps_c) || changed;
  }
  CHECK(tree == OrderedJson::parse(R"({"program": [{"c": {"numel": 0}}]})"));
}

}  // namespace rollcall::scenario::minimize_test
