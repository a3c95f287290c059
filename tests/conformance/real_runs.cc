#include "tests/conformance/real_runs.h"

#include <deque>
#include <iostream>

#include <fmt/format.h>

#include "real/backends.h"
#include "real/launch/launch.h"
#include "real/launch/recorder.h"

namespace rollcall::test {
namespace {

using compare::Facts;

class MemorySink final : public real::RecordSink {
 public:
  void write(const real::Record& record) override { records.push_back(record); }

  std::vector<real::Record> records;
};

Facts simulate(sim::Options options, const sim::Program& program) {
  const real::RunClock clock;
  std::deque<MemorySink> sinks;
  options.decorate = [&](Backend& inner) {
    return std::make_unique<real::Recorder>(inner, sinks.emplace_back(), clock);
  };
  const Report report = sim::run(options, program);
  std::vector<std::vector<real::Record>> logs;
  for (const MemorySink& sink : sinks) {
    logs.push_back(sink.records);
  }
  return compare::facts_of(report, logs);
}

Facts run_real(const sim::Options& options, const sim::Program& program) {
  real::Options real{.world_size = options.world_size,
                     .backend = "gloo",
                     .deadline = 30 * second,
                     .patience = 300 * millisecond,
                     .timeout = options.timeout,
                     .finished_ranks_exit = options.finished_ranks_exit,
                     .time_scale = 0};
  for (const sim::Group& group : options.groups) {
    real.groups.push_back({group.name, group.ranks});
  }
  const real::Run run = real::run(real, program);
  std::vector<std::vector<real::Record>> logs;
  for (const real::RankLog& rank : run.log.ranks) {
    logs.push_back(rank.records);
  }
  return compare::facts_of(run.report, logs);
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
  const Facts real = run_real(options, program);
  std::string text;
  for (const compare::Claim& claim : compare::compare(simulate(options, program), real, "gloo")) {
    if (claim.judgement == compare::Claim::Judgement::differs) {
      text += fmt::format("{}: {}: simulated {}; real {}; {}\n", name, claim.about, claim.simulated,
                          claim.real, claim.because);
    }
  }
  return text;
}

}  // namespace rollcall::test
