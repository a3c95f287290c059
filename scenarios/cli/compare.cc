#include <fmt/format.h>

#include "real/backends.h"
#include "scenarios/cli/errors.h"
#include "scenarios/cli/real.h"
#include "scenarios/compare/claims.h"
#include "scenarios/compare/result_file.h"
#include "scenarios/compare/simulated_facts.h"
#include "scenarios/json/diagnostic.h"
#include "viz/write_file.h"

namespace rollcall::cli {
namespace {

// The real side: run now, or taken from a file.
struct RealSide {
  scenario::Scenario scenario;  // as it is to be simulated
  std::string written_for;
  compare::Facts facts;
};

RealSide run_now(const CommandLine& line) {
  RealScenario loaded = load_for_real_ranks(line, line.real.ranks);
  remark_on_limits(line, loaded);
  real::Run run = scenario::run_real(loaded.scenario, loaded.options);
  std::vector<std::vector<real::Record>> logs;
  for (real::RankLog& rank : run.log.ranks) {
    logs.push_back(std::move(rank.records));
  }
  RealSide side{std::move(loaded.scenario), loaded.written_for, compare::facts_of(run.report, logs)};
  if (!line.real.record.empty()) {
    const std::string text = compare::write_result(side.facts, {.deadline = line.real.deadline});
    viz::write_file(line.real.record, [&text](std::ostream& out) { out << text; });
  }
  return side;
}

RealSide read_recorded(const CommandLine& line) {
  compare::Facts facts = compare::read_result(line.real.recorded);
  const auto ranks = static_cast<Rank>(facts.ranks.size());
  const std::string written_for = scenario::load_scenario(line.file, {.world_size = ranks}).options.backend;
  return {scenario::load_scenario(line.file, {.world_size = ranks, .backend = facts.backend}), written_for,
          std::move(facts)};
}

}  // namespace

ExitCode compare_with_real_ranks(const CommandLine& line) {
  try {
    const RealSide side = line.real.recorded.empty() ? run_now(line) : read_recorded(line);
    const std::vector<compare::Claim> claims =
        compare::compare(compare::simulated_facts(side.scenario), side.facts, side.written_for);
    emit(line, line.format == Format::json ? compare::json_of(claims, side.facts)
                                           : compare::text_of(claims, side.facts));
    return compare::any_differs(claims) ? ExitCode::differs : ExitCode::as_expected;
  } catch (const scenario::InvalidScenario& error) {
    show_diagnostics(line, error);
    return ExitCode::invalid;
  } catch (const compare::InvalidResult& error) {
    throw UsageError(error.what());
  } catch (const real::Unavailable& error) {
    remark(fmt::format("rollcall: not possible here: {}", error.what()));
    return ExitCode::unavailable;
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
}

}  // namespace rollcall::cli
