#include "scenarios/cli/pages.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/core.h>

#include "scenarios/cli/cli.h"
#include "scenarios/cli/watched_run.h"
#include "scenarios/format/cases.h"
#include "scenarios/format/report_reader.h"
#include "scenarios/format/scenario.h"
#include "scenarios/json/source.h"
#include "scenarios/run/runner.h"
#include "traces/formats/trace_reader.h"

namespace rollcall::cli {

namespace {

namespace fs = std::filesystem;

// The first entries by name; a folder of ranks' files has one kind.
Subject subject_of_folder(const std::string& path) {
  std::error_code error;
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (entry.is_regular_file()) {
      files.push_back(entry.path().string());
    }
  }
  if (error) {
    throw UsageError(fmt::format("cannot list '{}': {}", path, error.message()));
  }
  const bool has_trace = std::ranges::any_of(files, traces::looks_like_trace);
  return has_trace ? Subject::trace : Subject::dumps;
}

bool says_dump(std::string_view start) {
  const bool is_pickle = start.starts_with('\x80');
  return is_pickle || start.find("\"pg_config\"") != std::string_view::npos ||
         start.find("\"pg_status\"") != std::string_view::npos ||
         start.find("\"entries\"") != std::string_view::npos;
}

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

Subject subject_of(const std::string& path) {
  if (fs::is_directory(path)) {
    return subject_of_folder(path);
  }
  if (traces::looks_like_trace(path)) {
    return Subject::trace;
  }
  return says_dump(traces::beginning_of(scenario::parse_address(path).file)) ? Subject::dumps : Subject::run;
}

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
