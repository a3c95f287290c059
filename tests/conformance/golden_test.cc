// Runs the program of every golden file, whatever its name, in the simulator, and requires what real PyTorch did. To
// test a new file of a known kind, put it into tests/data/golden.

#include <algorithm>
#include <iostream>
#include <map>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/torch/torch_traits.h"
#include "tests/catch.h"
#include "tests/conformance/golden_case.h"
#include "tests/conformance/golden_compare.h"
#include "tests/conformance/golden_run.h"
#include "tests/conformance/programs.h"

namespace rollcall::golden::golden_test {

namespace {

// Distributed checkpoints are files, and their collectives carry pickles of torch's own classes.
constexpr std::string_view not_simulated[] = {"new_checkpoint"};

// How many differences of one case are printed; the rest follow from them.
constexpr std::size_t shown_differences = 8;

std::vector<GoldenCase> cases_with_programs() {
  std::vector<GoldenCase> cases;
  for (const auto& folder : golden_folders()) {
    for (const auto& path : golden_files(folder)) {
      GoldenCase golden = read_golden_case(path);
      if (has_programs(golden.family)) {
        cases.push_back(std::move(golden));
      }
    }
  }
  return cases;
}

std::string describe(const GoldenCase& golden, const std::vector<Difference>& differences) {
  std::string text = fmt::format("{} differences\n", differences.size());
  for (std::size_t i = 0; i < std::min(differences.size(), shown_differences); ++i) {
    text += "  " + to_string(golden, differences[i]) + "\n";
  }
  return text;
}

struct Score {
  int agree = 0;
  int total = 0;
};

using Scores = std::map<std::pair<TorchRelease, std::string>, Score>;

void print_scores(const Scores& scores, const std::set<const DeliberateDifference*>& used) {
  for (const auto& [key, score] : scores) {
    std::cout << fmt::format("{:<10}{:>4} / {} agree with real PyTorch {}\n", key.second, score.agree,
                             score.total, traits_of(key.first).name);
  }
  for (const DeliberateDifference& row : deliberate_differences()) {
    if (used.contains(&row)) {
      std::cout << fmt::format("deliberate: {}{}: {}\n", row.program, row.path, row.reason);
    }
  }
}

}  // namespace

TEST_CASE("golden programs do what they do on real PyTorch", "[fiber][conformance]") {
  Scores scores;
  std::set<const DeliberateDifference*> used;
  for (const GoldenCase& golden : cases_with_programs()) {
    Score& score = scores[{golden.torch, golden.family}];
    ++score.total;
    std::optional<Program> program = find_program(golden);
    if (!program) {
      INFO(golden.name << ": no program is written for this case");
      CHECK(std::ranges::find(not_simulated, golden.name) != std::end(not_simulated));
      continue;
    }
    Comparison comparison = compare(golden, *run_golden(golden, *program).document);
    used.insert(comparison.deliberate.begin(), comparison.deliberate.end());
    score.agree += comparison.differences.empty() ? 1 : 0;
    INFO(describe(golden, comparison.differences));
    CHECK(comparison.differences.empty());
  }
  print_scores(scores, used);
}

TEST_CASE("every deliberate difference from PyTorch is still one", "[fiber][conformance]") {
  std::set<const DeliberateDifference*> used;
  std::set<std::pair<std::string, TorchRelease>> seen;
  for (const GoldenCase& golden : cases_with_programs()) {
    seen.emplace(golden.program_name(), golden.torch);
    if (std::optional<Program> program = find_program(golden)) {
      Comparison comparison = compare(golden, *run_golden(golden, *program).document);
      used.insert(comparison.deliberate.begin(), comparison.deliberate.end());
    }
  }
  for (const DeliberateDifference& row : deliberate_differences()) {
    INFO(row.program << row.path);
    const bool was_seen = std::ranges::any_of(seen, [&](const auto& one) {
      return one.first == row.program && (!row.torch || one.second == *row.torch);
    });
    CHECK((used.contains(&row) || !was_seen));
  }
}

TEST_CASE("a golden program run twice leaves the same report", "[fiber][conformance]") {
  for (const GoldenCase& golden : cases_with_programs()) {
    std::optional<Program> program = find_program(golden);
    if (!program) {
      continue;
    }
    GoldenRun first = run_golden(golden, *program);
    GoldenRun second = run_golden(golden, *program);
    INFO(golden.name);
    CHECK(*first.document == *second.document);
    CHECK(first.report.timeline.fingerprint() == second.report.timeline.fingerprint());
    CHECK(verdict_word(first.report.verdict) == verdict_word(second.report.verdict));
    CHECK(first.report.simulated_time == second.report.simulated_time);
    CHECK(first.report.ops == second.report.ops);
  }
}

}  // namespace rollcall::golden::golden_test
