// Who is to blame, held against jobs whose mistake is known because it was drawn.

#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "scenarios/format/scenario.h"
#include "scenarios/run/runner.h"
#include "tests/blame/drawn_job.h"
#include "tests/catch.h"

namespace rollcall::blame {
namespace {

struct Score {
  int jobs = 0;  // that go wrong: some mistakes do no harm where they are made
  int exact = 0;

  void add(const Score& other) {
    jobs += other.jobs;
    exact += other.exact;
  }
};

using Table = std::map<std::string, std::map<std::string, Score>>;  // by mistake and layout

Report run_text(const std::string& text) {
  return scenario::run(scenario::parse_scenario(text, "drawn.json"));
}

Score score_of(const DrawnJob& job, std::uint64_t seed, bool tells) {
  const Report report = run_text(job.scenario);
  const Finding* finding = finding_of(report.verdict);
  if (finding == nullptr) {
    return {};
  }
  const bool exact = finding->culprits == job.culprits;
  if (!exact && tells) {
    fmt::print("{}: {} in {}: {} {}{}, and it is {}: {}\n", seed, job.mistake, job.layout,
               to_string(finding->kind), to_string(finding->culprits), finding->tie ? " (a tie)" : "",
               to_string(job.culprits), finding->headline);
  }
  return {1, exact ? 1 : 0};
}

std::uint64_t number(const char* name, std::uint64_t usual) {
  const char* value = std::getenv(name);
  return value == nullptr ? usual : std::strtoull(value, nullptr, 10);
}

void print(const Table& table) {
  fmt::print("| mistake |");
  for (const std::string& layout : layouts()) {
    fmt::print(" {} |", layout);
  }
  fmt::print("\n");
  for (const std::string& mistake : mistakes()) {
    fmt::print("| {} |", mistake);
    for (const std::string& layout : layouts()) {
      const auto row = table.find(mistake);
      const auto cell =
          row == table.end() ? std::map<std::string, Score>::const_iterator() : row->second.find(layout);
      if (row == table.end() || cell == row->second.end() || cell->second.jobs == 0) {
        fmt::print(" |");
      } else {
        fmt::print(" {}/{} |", cell->second.exact, cell->second.jobs);
      }
    }
    fmt::print("\n");
  }
}

}  // namespace

TEST_CASE("nobody is to blame in drawn jobs without a mistake", "[blame][fiber]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const DrawnJob job = drawn_job(seed, true);
    INFO("seed " << seed << ": " << job.scenario);
    CHECK(finding_of(run_text(job.scenario).verdict) == nullptr);
  }
}

TEST_CASE("whoever was told to deviate is to blame, and nobody else", "[blame][fiber]") {
  Score all;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    all.add(score_of(drawn_job(seed), seed, true));
  }
  CHECK(all.jobs > 100);
  CHECK(all.exact >= all.jobs - 1);
}

// ROLLCALL_DRAWN_JOBS=10000 rollcall_tests '[.blame-table]' prints the table of docs/blame.md; ROLLCALL_DRAWN_FIRST
// is the first seed, for jobs that nobody has seen.
TEST_CASE("a table of drawn jobs, by mistake and layout", "[.blame-table][fiber]") {
  Table table;
  Score all;
  const std::uint64_t first = number("ROLLCALL_DRAWN_FIRST", 0);
  for (std::uint64_t seed = first; seed < first + number("ROLLCALL_DRAWN_JOBS", 400); ++seed) {
    const DrawnJob job = drawn_job(seed);
    const Score score = score_of(job, seed, true);
    table[job.mistake][job.layout].add(score);
    all.add(score);
  }
  print(table);
  fmt::print("exact in {} of {}\n", all.exact, all.jobs);
}

}  // namespace rollcall::blame
