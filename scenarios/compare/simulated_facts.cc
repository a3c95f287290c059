#include "scenarios/compare/simulated_facts.h"

#include <deque>
#include <memory>

#include "real/rank/recorder.h"
#include "scenarios/run/runner.h"

namespace rollcall::compare {
namespace {

class MemorySink final : public real::RecordSink {
 public:
  void write(const real::Record& record) override { records.push_back(record); }

  std::vector<real::Record> records;
};

// The logs of a simulated run.
class RunLogs {
 public:
  std::unique_ptr<Backend> record(Backend& inner) {
    return std::make_unique<real::Recorder>(inner, sinks_.emplace_back(), clock_);
  }

  // Takes the logs of the first schedule that was tried: the real ranks make the same decisions.
  std::vector<std::vector<real::Record>> of_ranks(Rank world_size) {
    sinks_.resize(static_cast<std::size_t>(world_size));
    std::vector<std::vector<real::Record>> logs;
    for (MemorySink& sink : sinks_) {
      logs.push_back(std::move(sink.records));
    }
    return logs;
  }

 private:
  real::RunClock clock_;
  std::deque<MemorySink> sinks_;  // by rank: the engine decorates them in order
};

}  // namespace

SimulatedRun simulate(const scenario::Scenario& scenario, bool timeline) {
  RunLogs logs;
  Report report = scenario::run(
      scenario, {.timeline = timeline, .decorate = [&](Backend& inner) { return logs.record(inner); }});
  Facts facts = facts_of(report, logs.of_ranks(scenario.options.world_size));
  return {std::move(facts), std::move(report)};
}

Facts simulated_facts(sim::Options options, const sim::Program& program) {
  RunLogs logs;
  options.decorate = [&](Backend& inner) { return logs.record(inner); };
  const Report report = sim::run(options, program);
  return facts_of(report, logs.of_ranks(options.world_size));
}

}  // namespace rollcall::compare
