#include "scenarios/cli/pages.h"

#include "scenarios/cli/watched_run.h"
#include "scenarios/format/cases.h"
#include "scenarios/format/report_reader.h"
#include "scenarios/format/scenario.h"
#include "scenarios/json/source.h"
#include "scenarios/run/runner.h"

namespace rollcall::cli {

namespace {

scenario::Scenario scenario_of(const scenario::SourceText& source, const scenario::CaseAddress& address,
                               Progress& progress) {
  scenario::Scenario loaded =
      scenario::parse_scenario(std::string(source.text()), address.file, {.selection = address.selection});
  watch(loaded, progress);
  return loaded;
}

viz::ComparedFact::Judgement judgement_of(compare::Claim::Judgement judgement) {
  using Judgement = viz::ComparedFact::Judgement;
  switch (judgement) {
    case compare::Claim::Judgement::agrees:
      return Judgement::same;
    case compare::Claim::Judgement::differs:
      return Judgement::differs;
    case compare::Claim::Judgement::cannot_be_judged:
      break;
  }
  return Judgement::open;
}

}  // namespace

Report load_report(const std::string& path, Progress& progress) {
  const scenario::CaseAddress address = scenario::parse_address(path);
  const scenario::SourceText source = scenario::read_source(address.file);
  if (std::optional<Report> report = scenario::read_report(source)) {
    return *std::move(report);
  }
  return scenario::run(scenario_of(source, address, progress), {.timeline = true});
}

compare::SimulatedRun load_run(const std::string& path, Progress& progress) {
  const scenario::CaseAddress address = scenario::parse_address(path);
  const scenario::SourceText source = scenario::read_source(address.file);
  if (std::optional<Report> report = scenario::read_report(source)) {
    compare::Facts facts = compare::facts_of(*report, {});
    return {std::move(facts), *std::move(report)};
  }
  return compare::simulate(scenario_of(source, address, progress), true);
}

std::vector<viz::ComparedFact> compared_facts(const std::vector<compare::Claim>& claims) {
  std::vector<viz::ComparedFact> facts;
  for (const compare::Claim& claim : claims) {
    facts.push_back({claim.about, claim.simulated, claim.real, judgement_of(claim.judgement), claim.because});
  }
  return facts;
}

}  // namespace rollcall::cli
