// Compares the blame with the truth, in random jobs whose mistake is known.

#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "scenarios/format/scenario.h"
#include "scenarios/recordings/recorded_run.h"
#include "scenarios/run/runner.h"
#include "sim/diagnose/dump_judge.h"
#include "tests/blame/drawn_job.h"
#include "tests/catch.h"
#include "tests/environment.h"
#include "tests/folder.h"
#include "traces/dumps/dump_writer.h"
#include "traces/formats/recordings.h"

namespace rollcall::blame::blame_test {
namespace {

// How many jobs were judged, and how many of them correctly.
struct Score {
  int jobs = 0;
  int exact = 0;
  int surely_wrong = 0;  // with high confidence

  void add(const Score& other) {
    jobs += other.jobs;
    exact += other.exact;
    surely_wrong += other.surely_wrong;
  }
};

struct Scores {
  Score run;
  Score diagnose;  // for jobs whose mistake recorders keep

  void add(const Scores& other) {
    run.add(other.run);
    diagnose.add(other.diagnose);
  }
};

using Table = std::map<std::pair<std::string, std::string>, Scores>;  // by mistake and layout

scenario::Scenario scenario_of(const DrawnJob& job) {
  return scenario::parse_scenario(job.scenario, "drawn.json");
}

Report run_job(const DrawnJob& job) { return scenario::run(scenario_of(job)); }

// Diagnoses the dumps that the recorders of a job would leave, written to files and read back.
Diagnosis diagnose(const DrawnJob& job) {
  const scenario::RecordedRun run = scenario::record_run(scenario_of(job));
  const test::Folder folder;
  for (const check::RankDump& dump : run.job.ranks) {
    folder.write("comm_lib_trace_rank_" + std::to_string(dump.rank),
                 traces::write_dump_pickle(run.job, dump));
  }
  if (run.job.ranks.empty()) {
    return {};
  }
  return check::judge_dump(traces::read_recordings({folder.path()}).job);
}

Score judged(const DrawnJob& job, std::uint64_t seed, const char* door, const Finding& finding,
             bool is_sure) {
  const bool exact = finding.culprits == job.culprits;
  if (!exact) {
    fmt::print("{} {} of {} in {}: {} {}{}{}, and it is {}: {}\n", door, seed, job.mistake, job.layout,
               to_string(finding.kind), to_string(finding.culprits), finding.tie ? " (a tie)" : "",
               is_sure ? " (high)" : "", to_string(job.culprits), finding.headline);
  }
  return {1, exact ? 1 : 0, !exact && is_sure ? 1 : 0};
}

// Some mistakes do no harm where they are made, and do not count.
Scores score_of(const DrawnJob& job, std::uint64_t seed) {
  const Report report = run_job(job);
  const Finding* finding = finding_of(report.verdict);
  if (finding == nullptr) {
    return {};
  }
  Scores scores{judged(job, seed, "run", *finding, confidence_in_blame(report.verdict) == Confidence::high),
                {}};
  if (job.is_recorded) {
    const Diagnosis diagnosis = diagnose(job);
    scores.diagnose =
        judged(job, seed, "diagnose", diagnosis.finding, diagnosis.confidence == Diagnosis::Confidence::high);
  }
  return scores;
}

void print(const Table& table, Score Scores::*door) {
  fmt::print("| mistake | {} |\n", fmt::join(layouts(), " | "));
  for (const std::string& mistake : mistakes()) {
    fmt::print("| {} |", mistake);
    for (const std::string& layout : layouts()) {
      const auto cell = table.find({mistake, layout});
      const Score score = cell == table.end() ? Score() : cell->second.*door;
      fmt::print("{} |", score.jobs == 0 ? "" : fmt::format(" {}/{}", score.exact, score.jobs));
    }
    fmt::print("\n");
  }
}

}  // namespace

// ROLLCALL_DRAWN_FIRST and ROLLCALL_DRAWN_JOBS select other jobs, and more of them.
TEST_CASE("nobody is to blame in drawn jobs without a mistake", "[blame][fiber]") {
  const std::uint64_t first = test::number_from_environment("ROLLCALL_DRAWN_FIRST", 0);
  for (std::uint64_t seed = first; seed < first + test::number_from_environment("ROLLCALL_DRAWN_JOBS", 60);
       ++seed) {
    const DrawnJob job = drawn_job(seed, true);
    INFO("seed " << seed << ": " << job.scenario);
    CHECK(finding_of(run_job(job).verdict) == nullptr);
    CHECK(diagnose(job).finding.kind == FindingKind::no_fault);
  }
}

TEST_CASE("whoever was told to deviate is to blame, and nobody else", "[blame][fiber]") {
  Scores all;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    all.add(score_of(drawn_job(seed), seed));
  }
  CHECK(all.run.jobs > 100);
  CHECK(all.run.exact >= all.run.jobs - 1);
  CHECK(all.run.surely_wrong == 0);
  CHECK(all.diagnose.jobs > 80);
  CHECK(100 * all.diagnose.exact >= 92 * all.diagnose.jobs);
  CHECK(all.diagnose.surely_wrong == 0);
}

// ROLLCALL_DRAWN_JOBS=10000 rollcall_tests '[.blame-table]' prints the tables of docs/blame.md; ROLLCALL_DRAWN_FIRST is
// the first seed, for jobs that have not been seen before.
TEST_CASE("a table of drawn jobs, by mistake and layout", "[.blame-table][fiber]") {
  Table table;
  Scores all;
  const std::uint64_t first = test::number_from_environment("ROLLCALL_DRAWN_FIRST", 0);
  for (std::uint64_t seed = first; seed < first + test::number_from_environment("ROLLCALL_DRAWN_JOBS", 400);
       ++seed) {
    const DrawnJob job = drawn_job(seed);
    const Scores scores = score_of(job, seed);
    table[{job.mistake, job.layout}].add(scores);
    all.add(scores);
  }
  print(table, &Scores::run);
  print(table, &Scores::diagnose);
  fmt::print("run: exact in {} of {}, wrong with high confidence in {}\n", all.run.exact, all.run.jobs,
             all.run.surely_wrong);
  fmt::print("diagnose: exact in {} of {}, wrong with high confidence in {}\n", all.diagnose.exact,
             all.diagnose.jobs, all.diagnose.surely_wrong);
}

}  // namespace rollcall::blame::blame_test
