#include "scenarios/test/run_tests.h"

#include <cstring>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/json/schema_check.h"
#include "scenarios/run/shell_word.h"
#include "scenarios/test/timestamp.h"
#include "viz/rows/phrases.h"

namespace rollcall::viz {

// CBOR preserves strings byte for byte, even if they are not UTF-8.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SourcePlace, file, line, column)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TestOutcome::Calls::Call, text, place)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TestOutcome::Calls, ranks, calls)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TestOutcome, status, file, title, tags, place, verdict, kind, headline,
                                   problems, text, shown, json, page, link, replay, seed, calls, elapsed)

}  // namespace rollcall::viz

namespace rollcall::scenario {

using real::Ending;
using viz::TestOutcome;

std::string ending_phrase(const Ending& ending, const real::ForkLimits& limits) {
  switch (ending.kind) {
    case Ending::Kind::returned:
      return "ended";
    case Ending::Kind::killed:
      return fmt::format("crashed: {}", ::strsignal(ending.number));
    case Ending::Kind::exited:
      return "failed with an internal error";
    case Ending::Kind::too_slow:
      return fmt::format("took longer than {}", viz::duration_phrase(limits.time));
    case Ending::Kind::too_large:
      return fmt::format("took more than {} MiB of memory", limits.memory_bytes / (1024 * 1024));
  }
  return "ended";
}

namespace {

// An outcome goes from one process to another as bytes.
std::string encode(const viz::TestOutcome& outcome) {
  const std::vector<std::uint8_t> bytes = nlohmann::json::to_cbor(nlohmann::json(outcome));
  return {bytes.begin(), bytes.end()};
}

viz::TestOutcome decode_outcome(const std::string& bytes) {
  return nlohmann::json::from_cbor(bytes).get<viz::TestOutcome>();
}

// For a process without a result.
TestOutcome outcome_of_ending(const Case& one, const Ending& ending, const real::ForkLimits& limits) {
  const bool is_slow = ending.kind == Ending::Kind::too_slow;
  TestOutcome outcome;
  outcome.status = is_slow ? TestOutcome::Status::failed : TestOutcome::Status::crashed;
  outcome.file = one.file;
  outcome.title = one.title();
  outcome.tags = one.tags;
  outcome.place = {one.file, one.expect.line, one.expect.column};
  outcome.problems.push_back(ending_phrase(ending, limits));
  outcome.text = ending.said.empty() ? "" : ending.said + (ending.said.ends_with('\n') ? "" : "\n");
  const std::string address =
      one.parameters.empty() ? one.file : fmt::format("{}::[{}]", one.file, one.parameters);
  outcome.replay = "rollcall run " + shell_word(address);
  return outcome;
}

}  // namespace

viz::TestRun run_tests(const std::vector<Collected>& cases, const TestOptions& options,
                       const TestEvents& events, const volatile std::sig_atomic_t& interrupted) {
  viz::TestRun run;
  schema_fields();  // read here once, not again by every child
  run.selected = cases.size();
  run.timestamp = timestamp();
  const real::RunClock clock;
  std::size_t failures = 0;
  const auto work = [&](std::size_t index) { return encode(judge_case(cases[index].one, options.judge)); };
  const auto receive = [&](std::size_t index, Ending ending) {
    TestOutcome outcome = ending.kind == Ending::Kind::returned
                              ? decode_outcome(ending.result)
                              : outcome_of_ending(cases[index].one, ending, options.limits);
    outcome.elapsed = has_fixed_date() ? 0 : ending.elapsed;
    failures += outcome.status == TestOutcome::Status::passed ? 0 : 1;
    events.finished(outcome);
    run.outcomes.push_back(std::move(outcome));
    return options.failures_max == 0 || failures < options.failures_max;
  };
  const auto moved = [&](std::size_t newest, std::size_t done) {
    if (events.moved) {
      events.moved(cases[newest].one, done);
    }
  };
  real::ForkedPool(options.limits, interrupted).run(cases.size(), work, receive, moved);
  run.interrupted = interrupted != 0;
  run.elapsed = has_fixed_date() ? 0 : clock.now();
  return run;
}

}  // namespace rollcall::scenario
