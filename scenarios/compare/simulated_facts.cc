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

}  // namespace

SimulatedRun simulate(const scenario::Scenario& scenario, bool timeline) {
  const real::RunClock clock;
  std::deque<MemorySink> sinks;  // by rank: the engine decorates them in order
  SimulatedRun run;
  run.report =
      scenario::run(scenario, {.timeline = timeline, .decorate = [&](Backend& inner) {
                                 return std::make_unique<real::Recorder>(inner, sinks.emplace_back(), clock);
                               }});
  // Takes the logs of the first schedule that was tried: the real ranks make the same decisions.
  sinks.resize(static_cast<std::size_t>(scenario.options.world_size));
  std::vector<std::vector<real::Record>> logs;
  for (MemorySink& sink : sinks) {
    logs.push_back(std::move(sink.records));
  }
  run.facts = facts_of(run.report, logs);
  return run;
}

Facts simulated_facts(sim::Options options, const sim::Program& program) {
  const real::RunClock clock;
  std::deque<MemorySink> sinks;
  options.decorate = [&](Backend& inner) {
    return std::make_unique<real::Recorder>(inner, sinks.emplace_back(), clock);
  };
  const Report report = sim::run(options, program);
  std::vector<std::vector<real::Record>> logs;
  for (MemorySink& sink : sinks) {
    logs.push_back(std::move(sink.records));
  }
  return facts_of(report, logs);
}

Facts simulated_facts(const scenario::Scenario& scenario) { return simulate(scenario).facts; }

}  // namespace rollcall::compare
