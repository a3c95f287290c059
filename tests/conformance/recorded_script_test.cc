// Scripts that are recorded and replayed ask for what the same programs asked for on real PyTorch.

#include <memory>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "scenarios/run/runner.h"
#include "scenarios/scenario.h"
#include "tests/conformance/golden_case.h"
#include "tests/conformance/recorder.h"
#include "tests/scripts.h"

namespace rollcall::golden {
namespace {

using nlohmann::json;

struct Script {
  std::string name;  // of tests/scripts
  std::string arguments;
  std::string golden;  // of tests/data/golden
};

// What of a call can be compared across programs that put other numbers into their tensors.
json essence(const json& op) {
  json kept;
  for (const char* key : {"op", "numel", "out_numel", "dtype", "reduce", "root", "peer"}) {
    kept[key] = op.value(key, json());
  }
  return kept;
}

json essence(const OpRecord& op) {
  json kept = {{"op", recorded_name(op)}, {"numel", op.numel}};
  kept["out_numel"] = op.out_numel ? json(*op.out_numel) : json();
  kept["dtype"] = op.dtype ? json(to_string(*op.dtype)) : json();
  kept["reduce"] = op.reduce ? json(to_string(*op.reduce)) : json();
  kept["root"] = op.root ? json(*op.root) : json();
  kept["peer"] = op.peer ? json(*op.peer) : json();
  return kept;
}

RunLog replay(const std::string& text) {
  const scenario::Scenario scenario = scenario::parse_scenario(text, "recorded.json");
  RunLog log(static_cast<std::size_t>(scenario.options.world_size));
  scenario::run(scenario, {.seed = {}, .timeline = false, .decorate = [&log](Backend& inner) {
                             return std::make_unique<Recorder>(inner, log);
                           }});
  return log;
}

void compare(const json& golden, const RunLog& log) {
  REQUIRE(golden.at("ranks").size() == log.size());
  for (std::size_t rank = 0; rank < log.size(); ++rank) {
    const json& expected = golden.at("ranks")[rank].at("ops");
    INFO("rank " << rank);
    CHECK(log[rank].ops.size() == expected.size());
    for (std::size_t i = 0; i < std::min(log[rank].ops.size(), expected.size()); ++i) {
      INFO("call " << i);
      CHECK(essence(log[rank].ops[i]) == essence(expected[i]));
    }
  }
}

}  // namespace

TEST_CASE("recorded tutorial scripts ask for what they asked for on real PyTorch", "[record][conformance]") {
  if (!test::has_torch()) {
    return;
  }
  const std::vector<Script> scripts = {
      {"counter", "5,6 1", "tally/tally_tutorial_sync"},
      {"counter", "5,6 0", "tally/tally_tutorial_nosync"},
      {"counter", "0,3 1", "tally/tally_w2_first_zero"},
      {"join_ddp", "2,4", "ddp/ddp_linear_w2"},
      {"join_ddp", "3,3", "ddp/ddp_linear_w2_equal"},
      {"join_ddp", "1,1,5,1", "ddp/ddp_linear_w4_outlier"},
      {"join_ddp", "3,3 --no-join", "ddp/ddp_plain_equal"},
      {"join_ddp", "2,3 --no-join", "ddp/ddp_plain_uneven"},
  };
  for (const Script& script : scripts) {
    INFO(script.name << ' ' << script.arguments);
    const GoldenCase golden = read_golden_case(golden_folder() / (script.golden + ".json"));
    const test::Shell shell;
    const test::Outcome outcome =
        shell.rollcall("record --simulate -n " + std::to_string(golden.world_size) + " -o out.json " +
                       test::script(script.name) + " " + script.arguments);
    INFO(outcome.err);
    compare(*golden.document, replay(test::contents(shell.path("out.json"))));
  }
}

}  // namespace rollcall::golden
