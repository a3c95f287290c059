#include "scenarios/recordings/recorded_run.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "scenarios/run/interpreter.h"
#include "scenarios/run/run_state.h"
#include "scenarios/run/runner.h"
#include "sim/explore/schedules.h"
#include "sim/judge/complete.h"
#include "traces/dumps/dump_recorder.h"

namespace rollcall::scenario {
namespace {

using State = RankClass::State;

// The recorders of one run. The engine owns them until it ends; the dumps are taken out before that.
class JobRecorder {
 public:
  JobRecorder(const sim::Options& options, bool one_program) : exits_early_(options.finished_ranks_exit) {
    recording_.timeout = options.timeout;
    recording_.one_program = one_program;
    for (const sim::Group& group : options.groups) {
      recording_.group_timeouts.emplace(group.name, group.timeout);
    }
  }

  std::unique_ptr<Backend> around(Backend& inner) {
    const auto rank = static_cast<Rank>(recorders_.size());
    auto recorder = std::make_unique<traces::DumpRecorder>(inner, rank, recording_);
    recorders_.push_back(recorder.get());
    return recorder;
  }

  // A process that has ended writes no file.
  void settle(std::span<const State> ranks) {
    const bool standstill = std::ranges::find(ranks, State::waiting) != ranks.end();
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      check::RankDump dump = recorders_[i]->finish(standstill);
      const bool is_gone = ranks[i] == State::crashed || ranks[i] == State::raised ||
                           (ranks[i] == State::finished && exits_early_);
      if (is_gone) {
        without_dump_.insert(dump.rank);
      } else {
        job_.ranks.push_back(std::move(dump));
      }
    }
  }

  // `report` is set by the caller.
  RecordedRun take() {
    job_.calls = std::move(recording_.tables.calls.things());
    job_.stacks = std::move(recording_.tables.stacks.things());
    job_.groups = std::move(recording_.tables.groups.things());
    return {std::move(job_), std::move(without_dump_), {}};
  }

 private:
  bool exits_early_;
  traces::JobRecording recording_;
  std::vector<traces::DumpRecorder*> recorders_;  // by rank; the engine owns them
  check::JobDump job_;
  RankSet without_dump_;
};

}  // namespace

RecordedRun record_run(const Scenario& scenario, std::optional<std::uint64_t> seed) {
  std::optional<RecordedRun> kept;
  bool went_wrong = false;
  Report report =
      sim::run_schedules([&](sim::Decisions& decisions) {
        sim::Options options = scenario.options;
        options.seed = seed.value_or(options.seed);
        JobRecorder recorder(options, scenario.block_of_rank.empty());
        options.decorate = [&recorder](Backend& inner) { return recorder.around(inner); };
        options.on_settled = [&recorder](std::span<const State> ranks) { recorder.settle(ranks); };
        Report of_run = run_once(scenario, options, decisions);
        if (decisions.orders_calls()) {
          return of_run;  // made to see whether orders matter, and not one of the schedules
        }
        const bool is_wrong = finding_of(of_run.verdict) != nullptr;
        if (!kept || (is_wrong && !went_wrong)) {
          kept = recorder.take();
          went_wrong = is_wrong;
        }
        return of_run;
      }).report;
  check::complete(report, rehearsal_of(scenario));
  hold_against(scenario, report);
  kept->report = std::move(report);
  return std::move(*kept);
}

}  // namespace rollcall::scenario
