// Properties that hold for every scenario. Each run of the tests takes a few hundred seeds; for more:
//
//   ROLLCALL_SEEDS=10000 rollcall_tests '[random-scenarios]'
//
// ROLLCALL_FIRST_SEED=N begins with seed N instead of 0. A failure names its seed and shows the scenario.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "scenarios/compare/claims.h"
#include "scenarios/compare/simulated_facts.h"
#include "scenarios/format/report_reader.h"
#include "scenarios/format/scenario.h"
#include "scenarios/json/source.h"
#include "scenarios/recordings/recorded_run.h"
#include "scenarios/run/explore_scenario.h"
#include "scenarios/run/real_run.h"
#include "scenarios/run/runner.h"
#include "scenarios/variants/minimize.h"
#include "sim/diagnose/dump_judge.h"
#include "sim/fibers/rank_scheduler.h"
#include "tests/catch.h"
#include "tests/conformance/generated_scenarios.h"
#include "tests/conformance/real_runs.h"
#include "tests/folder.h"
#include "tests/unit/viz/traces/trace_validator.h"
#include "viz/json/json_report.h"
#include "viz/text/text_report.h"
#include "viz/traces/chrome_trace.h"

namespace rollcall::conformance::random_scenarios_test {
namespace {

std::uint64_t number(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Seeds {
  std::uint64_t first = number("ROLLCALL_FIRST_SEED", 0);
  std::uint64_t count;
};

Report run_text(const std::string& text, std::optional<std::uint64_t> seed = std::nullopt) {
  return scenario::run(scenario::parse_scenario(text, "generated.json"), {.seed = seed, .timeline = true});
}

std::string trace_of(const Report& report) {
  std::ostringstream out;
  viz::chrome_trace(report, out);
  return out.str();
}

std::string everything(Report report) {
  report.seed = 0;
  report.replay.clear();
  return viz::json_report(report) + viz::text_report(report, {viz::TextStyle::Detail::verbose, false}) +
         trace_of(report);
}

std::size_t line_max(const std::string& text) {
  std::size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    longest = std::max(longest, line.size());
  }
  return longest;
}

// Checks what every finding must tell the reader.
void check_verdict(Report report) {
  const Finding* finding = finding_of(report.verdict);
  if (finding == nullptr) {
    CHECK(std::ranges::all_of(
        report.ranks, [](const RankClass& ranks) { return ranks.state == RankClass::State::finished; }));
    return;
  }
  CHECK_FALSE(finding->headline.empty());
  CHECK_FALSE(finding->cause.empty());
  report.output.clear();  // the ranks' own output is printed unchanged
  CHECK(line_max(viz::text_report(report, {})) <= 100);
}

void check_scenario(const GeneratedScenario& generated) {
  const Report report = run_text(generated.text);
  const std::string all = everything(report);
  CHECK(everything(run_text(generated.text)) == all);
  // Which rank makes the last operation that a limit allows depends on the order in which ranks run.
  const bool is_cut = std::holds_alternative<LimitReached>(report.verdict);
  if (!generated.leaves_to_chance && !is_cut) {
    CHECK(everything(run_text(generated.text, 4711)) == all);
  }
  check_verdict(report);
  CHECK(viz::test::chrome_trace_problems(trace_of(report)).empty());
  const std::string json = viz::json_report(report);
  const std::optional<Report> read = scenario::read_report(scenario::SourceText("report.json", json));
  REQUIRE(read);
  CHECK(viz::json_report(*read) == json);
}

bool is_part(const Report& search) { return !search.search->bounds.empty(); }

// If ranks decide by timing, the run looks at several of their orders, not all the same ones as the search. If both
// looked at a part only, it is enough that both found something.
bool has_outcome(const Report& search, const Report& run) {
  const FindingKind kind = kind_of(run.verdict);
  const bool are_samples = run.schedules > 1 && !run.exhaustive && is_part(search);
  return std::ranges::any_of(search.search->outcomes, [&](const Outcome& each) {
    return each.kind == kind || (are_samples && kind != FindingKind::ok && each.kind != FindingKind::ok);
  });
}

// True if the job ended with operations that no rank waited for: its last dump is that of a job that hangs.
bool leaves_work(const check::JobDump& job) {
  return std::ranges::any_of(job.ranks, [](const check::RankDump& dump) {
    return !std::ranges::all_of(dump.records, &check::DumpRecord::is_over);
  });
}

void check_agreement(const GeneratedScenario& generated) {
  const scenario::Scenario scenario = scenario::parse_scenario(generated.text, "generated.json");
  const Report report = scenario::run(scenario);
  const bool fails = finding_of(report.verdict) != nullptr;

  scenario::ExploreScenarioOptions options;
  options.search.schedules = 32;
  Report search = scenario::explore(scenario, options);
  REQUIRE(search.search);
  if (!has_outcome(search, report) && is_part(search)) {  // few orders do what the run found
    options.search.schedules = 4096;
    search = scenario::explore(scenario, options);
  }
  CHECK((has_outcome(search, report)));

  const test::Folder folder;
  const std::string file = folder.write("generated.json", generated.text);
  const bool is_cut = std::holds_alternative<LimitReached>(report.verdict);
  if (fails && !is_cut) {
    const scenario::Minimized smaller = scenario::minimize(file, {});
    const Report again = run_text(smaller.text);
    CHECK(to_string(scenario::signature_of(again)) == to_string(smaller.signature));
    CHECK(smaller.after.statements <= smaller.before.statements);
  }

  const scenario::RecordedRun recorded = scenario::record_run(scenario);
  if (!recorded.job.ranks.empty() && !is_cut) {
    const Diagnosis diagnosis = check::judge_dump(recorded.job);
    INFO(viz::text_report(report, {}) << "\n" << diagnosis.finding.headline);
    if (!fails) {
      CHECK((!is_alarm(diagnosis) || leaves_work(recorded.job)));
    } else if (std::holds_alternative<Deadlock>(report.verdict)) {
      CHECK((diagnosis.finding.kind != FindingKind::no_fault || diagnosis.confidence != Confidence::high));
    }
  }
}

// Calls `check` for each seed, on a thread whose stacks its runs share.
void for_each(Seeds seeds, const std::function<void(std::uint64_t)>& check) {
  sim::run_on_threads(1, [&](std::uint32_t) {
    for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
      check(seed);
    }
  });
}

void list_slowest(std::vector<std::pair<double, std::uint64_t>> times) {
  std::ranges::sort(times, std::greater<>());
  times.resize(std::max<std::size_t>(times.size() / 100, 1));
  for (const auto& [milliseconds, seed] : times) {
    std::cout << fmt::format("seed {}: {:.1f} ms\n", seed, milliseconds);
  }
}

}  // namespace

TEST_CASE("whatever a scenario says, its run is the same each time, and its report is sound",
          "[random-scenarios][fiber]") {
  const Seeds seeds{.count = number("ROLLCALL_SEEDS", 300)};
  std::vector<std::pair<double, std::uint64_t>> times;
  for_each(seeds, [&](std::uint64_t seed) {
    const GeneratedScenario generated = generated_scenario(seed);
    INFO("seed " << seed << ": " << generated.text);
    const auto began = std::chrono::steady_clock::now();
    CHECK_NOTHROW(check_scenario(generated));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
    times.emplace_back(took.count(), seed);
  });
  if (std::getenv("ROLLCALL_SEEDS") != nullptr) {
    list_slowest(std::move(times));
  }
}

// A search through many schedules, a minimization and a recording take as long as dozens of runs, so there are fewer of
// them.
TEST_CASE("whatever a scenario says, a search, a smaller scenario and a recording agree with its run",
          "[random-scenarios][fiber]") {
  const Seeds seeds{.count = number("ROLLCALL_SEEDS", 300) / 10};
  for_each(seeds, [](std::uint64_t seed) {
    const GeneratedScenario generated = generated_scenario(seed);
    INFO("seed " << seed << ": " << generated.text);
    CHECK_NOTHROW(check_agreement(generated));
  });
}

// A real run takes a tenth of a second, so there are fewer of them.
TEST_CASE("real Gloo ranks do what the simulator says of a scenario that leaves nothing to timing",
          "[random-scenarios][real]") {
  if (!test::has_gloo()) {
    return;
  }
  const Seeds seeds{.count = number("ROLLCALL_SEEDS", 400) / 10};
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    const GeneratedScenario generated = generated_scenario(seed);
    if (!generated.runs_on_gloo) {
      continue;
    }
    INFO("seed " << seed << ": " << generated.text);
    const scenario::Scenario scenario = scenario::parse_scenario(generated.text, "generated.json");
    const compare::SimulatedRun simulated = compare::simulate(scenario);
    const real::Run run = scenario::run_real(scenario, {.backend = "gloo", .time_scale = 0});
    std::vector<std::vector<real::Record>> logs;
    for (const real::RankLog& rank : run.log.ranks) {
      logs.push_back(rank.records);
    }
    const compare::Facts facts = compare::facts_of(run.report, logs);
    const std::vector<compare::Claim> claims = compare::compare(simulated.facts, facts, "gloo");
    INFO(compare::text_of(claims, facts));
    CHECK_FALSE(compare::any_differs(claims));
  }
}

}  // namespace rollcall::conformance::random_scenarios_test
