#include "scenarios/recordings/imported_job.h"

#include <array>
#include <map>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/format/scenario.h"
#include "scenarios/import/roll_up.h"
#include "scenarios/recordings/recorded_programs.h"
#include "scenarios/run/runner.h"
#include "sim/c10d/backend_traits.h"
#include "sim/report/blame.h"

namespace rollcall::scenario {
namespace {

// From the most readable one to the one with the fewest assumptions.
constexpr std::array<RecordedProgramOptions, 3> ways = {{
    {.async_when_over = false, .labels = true},
    {.async_when_over = true, .labels = true},
    {.async_when_over = true, .labels = false},
}};

constexpr Rank ranks_max = 1'000'000;

// Verdicts about times, networks, and kernels: all their calls are paired, so a simulation of them ends well.
bool simulates_well(const Diagnosis& diagnosis) {
  return diagnosis.finding.culprits.empty() || diagnosis.finding.kind == FindingKind::straggler;
}

OrderedJson programs_of(const RecordedPrograms& recorded) {
  std::map<std::vector<std::uint32_t>, RankSet> ranks_of;
  std::vector<const std::vector<std::uint32_t>*> in_order;
  for (std::size_t rank = 0; rank < recorded.programs.size(); ++rank) {
    const auto [program, is_new] = ranks_of.try_emplace(recorded.programs[rank]);
    program->second.insert(static_cast<Rank>(rank));
    if (is_new) {
      in_order.push_back(&program->first);
    }
  }
  OrderedJson programs = OrderedJson::object();
  for (const std::vector<std::uint32_t>* program : in_order) {
    programs[to_string(ranks_of.at(*program))] = roll_up({recorded.statements, *program});
  }
  return programs;
}

OrderedJson scenario_of(const RecordedPrograms& recorded) {
  OrderedJson scenario = {{"version", 1},
                          {"name", "imported from Flight Recorder dumps"},
                          {"world_size", recorded.world_size},
                          {"backend", recorded.backend}};
  if (traits_of(recorded.backend).queues_calls) {
    scenario["blocking_wait"] = true;  // a rank's earlier calls hold up its later ones
  }
  if (!recorded.groups.empty()) {
    scenario["groups"] = recorded.groups;
  }
  if (traits_of(recorded.backend).connects_at_first_use) {
    scenario["communicators"] = "eager";  // a call is recorded once its communicator exists
  }
  const OrderedJson programs = programs_of(recorded);
  programs.size() == 1 ? scenario["program"] = programs.begin().value() : scenario["programs"] = programs;
  return scenario;
}

std::string comment_of(const Diagnosis& diagnosis) {
  std::string text = fmt::format("From {} records of {} ranks, diagnosed as {}.\n", diagnosis.records,
                                 diagnosis.world_size, to_string(diagnosis.finding.kind));
  if (!diagnosis.finding.headline.empty()) {
    text += plain_text(diagnosis.finding.headline) + ".\n";
  }
  if (diagnosis.finding.kind == FindingKind::stuck_device) {
    text += "A device that is stuck is modeled here as a rank that ends before the call.\n";
  }
  return text +
         "The recording lacks roots, reduce ops, tags, splits and values; they have their defaults here.\n";
}

// How far a run confirms the diagnosis.
enum class Agreement { none, among_others, full };

// If nothing decides between the sides of a disagreement, a run names all of them. The diagnosis may have seen what
// ranks did before.
Agreement agreement_of(const Report& report, const Diagnosis& diagnosis) {
  const Finding* finding = finding_of(report.verdict);
  if (finding == nullptr || simulates_well(diagnosis)) {
    return (finding == nullptr) == simulates_well(diagnosis) ? Agreement::full : Agreement::none;
  }
  Expectation expectation;
  expectation.verdict = verdict_word(report.verdict);
  expectation.culprits = diagnosis.finding.culprits;
  if (unmet(expectation, report).empty()) {
    return Agreement::full;
  }
  const bool are_among = finding->culprits.contains(diagnosis.finding.culprits);
  return are_among && is_undecided(report.verdict) ? Agreement::among_others : Agreement::none;
}

OrderedJson expectation_of(const Report& report, const Diagnosis& diagnosis) {
  OrderedJson expect = {{"verdict", verdict_word(report.verdict)}};
  if (const Finding* finding = finding_of(report.verdict)) {
    const bool agree = agreement_of(report, diagnosis) == Agreement::full;
    expect["culprits"] = (agree ? diagnosis.finding.culprits : finding->culprits).to_vector();
  }
  return expect;
}

std::string disagreement(const Report& report, const Diagnosis& diagnosis) {
  const Finding* finding = finding_of(report.verdict);
  return fmt::format(
      "the simulation gives {} ({}), but the dumps give {} ({})", verdict_word(report.verdict),
      finding == nullptr ? "nobody" : ranks_phrase(finding->culprits), to_string(diagnosis.finding.kind),
      diagnosis.finding.culprits.empty() ? "nobody" : ranks_phrase(diagnosis.finding.culprits));
}

struct Attempt {
  OrderedJson scenario;
  Report report;
};

Attempt attempt(const check::JobDump& job, const Diagnosis& diagnosis, const RecordedProgramOptions& way) {
  Attempt result;
  result.scenario = scenario_of(recorded_programs(job, diagnosis, way));
  result.report = run(parse_scenario(scenario_text(result.scenario, ""), "imported.json"));
  return result;
}

}  // namespace

ImportedJob import_dumps(const check::JobDump& job, const Diagnosis& diagnosis) {
  if (diagnosis.world_size > ranks_max) {
    return {"", fmt::format("the dumps are of {} ranks, but a scenario has at most {}", diagnosis.world_size,
                            ranks_max)};
  }
  Attempt best = attempt(job, diagnosis, ways.front());
  for (std::size_t i = 1; i < ways.size() && agreement_of(best.report, diagnosis) != Agreement::full; ++i) {
    Attempt other = attempt(job, diagnosis, ways[i]);
    if (agreement_of(other.report, diagnosis) > agreement_of(best.report, diagnosis)) {
      best = std::move(other);
    }
  }
  best.scenario["expect"] = expectation_of(best.report, diagnosis);
  const bool agree = agreement_of(best.report, diagnosis) != Agreement::none;
  return {scenario_text(best.scenario, comment_of(diagnosis)),
          agree ? "" : disagreement(best.report, diagnosis)};
}

}  // namespace rollcall::scenario
