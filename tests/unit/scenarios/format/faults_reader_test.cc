#include "scenarios/format/scenario.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/run/runner.h"
#include "tests/catch.h"

namespace rollcall::scenario::faults_reader_test {

namespace {

sim::Options options_of(const std::string& faults) {
  return parse_scenario(R"({"world_size": 4, "program": [], "faults": )" + faults + "}", "test.json").options;
}

std::string problem(const std::string& faults) {
  try {
    options_of(faults);
  } catch (const InvalidScenario& error) {
    const Diagnostic& first = error.diagnostics().front();
    return first.pointer + ": " + first.message;
  }
  return "";
}

}  // namespace

TEST_CASE("faults name ranks and how slow they are", "[scenarios][faults]") {
  const sim::Options options =
      options_of(R"([{"kind": "slow", "ranks": "1-2", "factor": 2.5}, {"kind": "jitter", "fraction": 0.1}])");
  REQUIRE(options.slow.size() == 1);
  CHECK(options.slow[0].ranks == RankSet::range(1, 2));
  CHECK(options.slow[0].factor == 2'500'000);
  REQUIRE(options.jitter.size() == 1);
  CHECK(options.jitter[0].ranks == RankSet::range(0, 3));
  CHECK(options.jitter[0].most == 100'000);
}

TEST_CASE("a crash names ranks and the time at which they die", "[scenarios][faults]") {
  const sim::Options options = options_of(R"([{"kind": "crash", "ranks": [2], "at": "10ms"}])");
  REQUIRE(options.crashes.size() == 1);
  CHECK(options.crashes[0].ranks == RankSet{2});
  CHECK(options.crashes[0].at == 10 * millisecond);
  CHECK(problem(R"([{"kind": "crash", "ranks": 1}])") == "/faults/0: \"at\" is missing");
  CHECK_THAT(problem(R"([{"kind": "crash", "at": 10}])"), Contains("/faults/0/at"));
  CHECK_THAT(problem(R"([{"kind": "crash", "at": "soon"}])"), Contains("/faults/0/at"));
  CHECK(problem(R"([{"kind": "slow", "factor": 2, "at": "1s"}])") ==
        "/faults/0/at: a slow rank needs a \"factor\"");
}

TEST_CASE("a compute's jitter comes from the seed, and from nothing else", "[scenarios][faults][fiber]") {
  const auto time = [](const std::string& jitter, std::uint64_t seed) {
    const std::string text = R"({"world_size": 2, "backend": "gloo", "program": [
        {"repeat": 10, "do": [{"compute": "1ms", "jitter": ")" +
                             jitter + R"("}]}]})";
    return run(parse_scenario(text, "test.json"), {.seed = seed}).simulated_time;
  };
  CHECK(time("0%", 1) == 10 * millisecond);
  CHECK(time("50%", 1) == time("50%", 1));
  CHECK(time("50%", 1) != time("50%", 2));
  CHECK(time("50%", 1) > 10 * millisecond);
  CHECK(time("50%", 1) <= 15 * millisecond);
}

TEST_CASE("faults that cannot be are refused where they stand", "[scenarios][faults]") {
  CHECK(problem(R"([{"kind": "slow", "ranks": 1}])") == "/faults/0: \"factor\" is missing");
  CHECK(problem(R"([{"kind": "jitter", "fraction": 1, "factor": 2}])") ==
        "/faults/0/factor: jitter needs a \"fraction\"");
  CHECK_THAT(problem(R"([{"kind": "slow", "ranks": 4, "factor": 2}])"), Contains("out of range"));
  CHECK_THAT(problem(R"([{"kind": "slow", "factor": 0}])"), Contains("/faults/0/factor: must be at least"));
  CHECK_THAT(problem(R"([{"kind": "sloow", "factor": 2}])"), Contains("/faults/0/kind"));
  CHECK_THAT(problem(R"([{"factor": 2}])"), Contains("\"kind\" is missing"));
}

}  // namespace rollcall::scenario::faults_reader_test
