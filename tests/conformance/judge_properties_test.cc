// Checks a property that must hold for every job, on jobs generated from a seed: the judge's answer depends only on
// what the ranks do.

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/format/scenario.h"
#include "scenarios/run/runner.h"
#include "tests/catch.h"
#include "tests/conformance/generated_jobs.h"
#include "viz/json/json_report.h"

namespace rollcall::conformance::judge_properties_test {
namespace {

constexpr std::uint64_t jobs = 400;

Report run_text(const std::string& text, std::uint64_t seed = 0) {
  return scenario::run(scenario::parse_scenario(text, "generated.json"), {.seed = seed});
}

RankSet renumber(const RankSet& ranks, const std::vector<Rank>& to) {
  std::vector<Rank> result;
  for (const Rank rank : ranks.to_vector()) {
    result.push_back(to[static_cast<std::size_t>(rank)]);
  }
  return RankSet::of(result);
}

// Returns the verdict without lines of files: what, which ranks, where.
std::string answer(const Report& report, const std::vector<Rank>& to) {
  const Finding* finding = finding_of(report.verdict);
  if (finding == nullptr) {
    return "ok";
  }
  std::string text =
      fmt::format("{} {} culprits {}{}", verdict_word(report.verdict), to_string(finding->kind),
                  to_string(renumber(finding->culprits, to)), finding->tie ? ", a tie" : "");
  const auto kind = finding->at ? parse_op_kind(finding->at->call.op) : std::nullopt;
  if (kind &&
      !is_point_to_point(*kind)) {  // of several messages one is shown, and they have only their ranks
    // In a tie of different operations, the report may show either.
    const std::string op =
        finding->kind == FindingKind::op_mismatch && finding->tie ? "a call" : finding->at->call.op;
    text += fmt::format(", {} #{} on {}: {} missing", op, finding->at->call.seq, finding->at->call.group,
                        to_string(renumber(finding->at->missing, to)));
    if (report.backend != "gloo") {  // Gloo's trees and rings depend on rank numbers, so the waiters differ
      text += fmt::format(", {} wait", to_string(renumber(finding->at->waiting, to)));
    }
  }
  if (finding->first_divergence) {
    text += fmt::format(", first divergence #{} on {}", finding->first_divergence->seq,
                        finding->first_divergence->group);
  }
  return text;
}

std::vector<Rank> unchanged(Rank world_size) {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < world_size; ++rank) {
    ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace

TEST_CASE("numbering the ranks otherwise renumbers the answer and changes nothing else",
          "[judge-properties][fiber]") {
  std::size_t failures = 0;
  for (std::uint64_t seed = 0; seed < jobs; ++seed) {
    const Job job = generated_job(seed);
    const std::vector<Rank> to = permutation(job.world_size, seed);
    const Report report = run_text(scenario_of(job));
    failures += finding_of(report.verdict) != nullptr ? 1 : 0;
    INFO("job " << seed << ": " << scenario_of(job) << "\nranks become "
                << fmt::format("{}", fmt::join(to, " ")));
    CHECK(answer(run_text(scenario_of(renumbered(job, to))), unchanged(job.world_size)) ==
          answer(report, to));
  }
  CHECK(failures > jobs / 3);
  CHECK(failures < jobs);
}

TEST_CASE("neither the order in which ranks run nor the order in the file changes the answer",
          "[judge-properties][fiber]") {
  for (std::uint64_t seed = 0; seed < jobs; ++seed) {
    const Job job = generated_job(seed);
    const std::vector<Rank> same = unchanged(job.world_size);
    const std::string expected = answer(run_text(scenario_of(job)), same);
    INFO("job " << seed << ": " << scenario_of(job));
    CHECK(answer(run_text(scenario_of(job), 1), same) == expected);
    CHECK(answer(run_text(scenario_of(job), 7777), same) == expected);
    CHECK(answer(run_text(scenario_of(job, true)), same) == expected);
  }
}

TEST_CASE("whoever is well waits for nothing, and equal runs print equal bytes",
          "[judge-properties][fiber]") {
  for (std::uint64_t seed = 0; seed < jobs; ++seed) {
    const std::string text = scenario_of(generated_job(seed));
    const Report report = run_text(text);
    INFO("job " << seed << ": " << text);
    CHECK(viz::json_report(report) == viz::json_report(run_text(text)));
    const bool all_finished = std::ranges::all_of(
        report.ranks, [](const RankClass& ranks) { return ranks.state == RankClass::State::finished; });
    CHECK((finding_of(report.verdict) != nullptr || all_finished));
    CHECK((finding_of(report.verdict) == nullptr || !finding_of(report.verdict)->headline.empty()));
  }
}

}  // namespace rollcall::conformance::judge_properties_test
