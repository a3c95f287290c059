#include "tests/conformance/real_runs.h"

#include <algorithm>
#include <iostream>
#include <optional>

#include <fmt/core.h>
#include <unistd.h>

#include "real/backends/backends.h"
#include "real/launch/launch.h"
#include "real/process/process.h"
#include "scenarios/compare/simulated_facts.h"

namespace rollcall::test {
namespace {

using compare::Facts;

Facts run_real(const sim::Options& options, const sim::Program& program) {
  real::Options real{.world_size = options.world_size,
                     .backend = "gloo",
                     .torch = options.torch,
                     .deadline = 30 * second,
                     .patience = 300 * millisecond,
                     .timeout = options.timeout,
                     .finished_ranks_exit = options.finished_ranks_exit,
                     .time_scale = options.timeout > 0 ? 1.0 : 0.0};  // with a timeout, work must take time
  for (const sim::Group& group : options.groups) {
    real.groups.push_back({group.name, group.ranks});
  }
  return compare::facts_of_run(real::run(real, program));
}

// Returns a line for each claim in which the two disagree.
std::string disagreements(const std::string& name, const Facts& simulated, const Facts& real) {
  std::string text;
  for (const compare::Claim& claim : compare::compare(simulated, real, "gloo")) {
    if (claim.judgement == compare::Claim::Judgement::differs) {
      constexpr std::string::size_type shown = 400;
      text += fmt::format("{}: {}: simulated {}; real {}; {}\n", name, claim.about,
                          claim.simulated.substr(0, shown), claim.real.substr(0, shown),
                          claim.because.substr(0, shown));
    }
  }
  return text;
}

}  // namespace

bool has_gloo() {
  for (const real::BackendEntry& backend : real::backends()) {
    if (backend.name == "gloo") {
      static const std::string obstacle = backend.obstacle(1);
      static const bool said =
          obstacle.empty() || static_cast<bool>(std::cout << "skipped: " << obstacle << "\n");
      return said && obstacle.empty();
    }
  }
  return false;
}

std::string differences(const std::string& name, const sim::Options& options, const sim::Program& program) {
  const Facts simulated = compare::simulated_facts(options, program);
  Facts real = run_real(options, program);
  std::string text = disagreements(name, simulated, real);
  if (!text.empty() && options.timeout > 0) {
    // A stalled machine can time out ranks that were only late, so a difference that a timeout makes must show twice.
    real = run_real(options, program);
    text = disagreements(name, simulated, real);
  }
  if (text.empty()) {
    return text;
  }
  // The logs of hanging ranks do not say what the ranks would have called next, so a simulation that may not find that
  // out either is an equally good answer.
  sim::Options once = options;
  once.may_run_again = false;
  sim::Options unmended = options;
  unmended.tries_repairs = false;  // a real run is not run again
  const auto agrees = [&](const sim::Options& with) {
    return disagreements(name, compare::simulated_facts(with, program), real).empty();
  };
  return agrees(unmended) || agrees(once) ? std::string() : text;
}

std::string differences(const std::vector<NamedRun>& runs) {
  struct Share {
    real::Pipe answer;
    std::optional<real::ChildProcess> process;
  };
  constexpr std::size_t at_a_time = 12;
  std::vector<Share> shares(std::min(at_a_time, runs.size()));
  for (std::size_t share = 0; share < shares.size(); ++share) {
    shares[share].process.emplace([&] {
      std::string text;
      for (std::size_t i = share; i < runs.size(); i += shares.size()) {
        text += differences(runs[i].name, runs[i].options, runs[i].program);
      }
      const bool told = ::write(shares[share].answer.write.number(), text.data(), text.size()) ==
                        static_cast<ssize_t>(text.size());
      ::_exit(told ? 0 : 1);
    });
    shares[share].answer.write.close();
  }
  std::string text;
  for (Share& share : shares) {
    char bytes[4096];
    for (ssize_t count = 0; (count = ::read(share.answer.read.number(), bytes, sizeof bytes)) > 0;) {
      text.append(bytes, static_cast<std::size_t>(count));
    }
    text += share.process->wait() == 0 ? "" : "a process that compares did not come to its end\n";
  }
  return text;
}

bool hangs(sim::Options options, const sim::Program& program) {
  options.timeout = 0;
  const Report report = sim::run(options, program);
  return std::ranges::any_of(report.ranks,
                             [](const RankClass& ranks) { return ranks.state == RankClass::State::waiting; });
}

}  // namespace rollcall::test
