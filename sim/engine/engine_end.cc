// The engine's part about the end: the proof of a deadlock, how real ranks would notice it, and the report.

#include <algorithm>
#include <utility>

#include "sim/base/expects.h"
#include "sim/engine/engine.h"
#include "sim/judge/judge.h"
#include "sim/match/naming.h"
#include "sim/tensor/tensor_too_large.h"

namespace rollcall::sim {
namespace {

using check::RankStatus;

}  // namespace

// Nothing is scheduled and ranks are parked: whatever they wait for can never happen. The verdict is
// settled here. The rest shows only how the real job would notice.
void Engine::at_deadlock() {
  if (let_some_through()) {
    return;
  }
  resolve_host_waits();
  if (!verdict_) {
    verdict_ = check::judge(evidence());
  }
  notify_settled();
  if (fail_lost_peers() || expire_timeouts()) {
    return;
  }
  conclude();
  aborting_ = true;
  abort_waiting();
}

void Engine::notify_settled() {
  if (was_settled_ || !run_.options.on_settled) {
    return;
  }
  was_settled_ = true;
  std::vector<RankClass::State> states;
  for (const RankStatus& status : run_.status) {
    states.push_back(status.state);
  }
  run_.options.on_settled(states);
}

// Ranks whose peer's process is gone see its connection close. True if there was one.
bool Engine::fail_lost_peers() {
  const std::string text = run_.rules->lost_peer_text();
  Interruptions lost;
  const std::vector<bool> torn = text.empty() ? std::vector<bool>() : torn_groups();
  for (Rank rank = 0; rank < run_.options.world_size && !text.empty(); ++rank) {
    if (run_.waits(rank) && has_lost_peer(run_.status_of(rank), torn)) {
      lost.emplace_back(rank, Interruption{false, text});
    }
  }
  const bool anybody = !lost.empty();
  interrupt_all(std::move(lost));
  return anybody;
}

// By group: whether some member's process is gone. Computed once for all waiting ranks.
std::vector<bool> Engine::torn_groups() const {
  std::vector<bool> torn;
  for (const GroupMembers& group : run_.members) {
    torn.push_back(std::ranges::any_of(group.ranks, [this](Rank rank) { return has_left(rank); }));
  }
  return torn;
}

bool Engine::has_left(Rank rank) const {
  const RankStatus::State state = run_.status_of(rank).state;
  const bool ended = state == RankStatus::State::finished || state == RankStatus::State::raised;
  return state == RankStatus::State::crashed || (ended && run_.options.finished_ranks_exit);
}

// A message fails when its other end's process is gone, unless it was half written by then (gloo::leaves_unread). A
// collective fails when a process with which the rank has messages in flight is gone, or if the backend cannot tell,
// when any member's is.
bool Engine::has_lost_peer(const RankStatus& status, const std::vector<bool>& torn) {
  if (status.channel != check::Channel::collectives) {
    return false;  // the store has other connections
  }
  if (!status.in_message()) {
    const check::Stuck* stuck = torn[status.group] ? stuck_of(status) : nullptr;
    return stuck == nullptr ? torn[status.group] : std::ranges::any_of(stuck->peers, [&](Rank peer) {
      return has_left(run_.members[status.group].ranks[static_cast<std::size_t>(peer)]);
    });
  }
  if (messages_.of(status.group).at(status.message).phase == check::Message::Phase::stuck) {
    return false;
  }
  check::Evidence all;
  all.groups = run_.groups;
  return std::ranges::any_of(check::awaited(all, status), [this](Rank peer) { return has_left(peer); });
}

// Called between two portions of steps. The running rank ends here if there is no more memory.
void Engine::look() {
  const Watch& watch = run_.options.watch;
  if (watch.progress) {
    watch.progress({ops_, ended_, run_.now});
  }
  const std::int64_t limit = run_.options.limits.memory_bytes;
  if (!aborting_ && limit > 0 && watch.memory_in_use && watch.memory_in_use() > limit) {
    stop(FindingKind::memory, limit);
    throw RankAborted{};
  }
}

void Engine::stop(FindingKind limit, std::int64_t value) {
  if (!aborting_) {
    run_.notes->limit = check::LimitIncident{limit, value};
    conclude();
    aborting_ = true;
    steps_.close();  // ranks that have not run yet, and may never call us, end at their first step
  }
}

// The rank that ran out of memory has been unwound. All others still have to be, which needs no memory. A verdict does
// need memory, and it needs evidence that was recorded completely.
void Engine::run_out_of_memory(const std::bad_alloc& error) {
  try {
    if (dynamic_cast<const TensorTooLarge*>(&error) != nullptr) {
      stop(FindingKind::memory, 0);
      return;
    }
  } catch (const std::bad_alloc&) {
    // Now there cannot be a verdict.
  }
  is_inconclusive_ = true;
  aborting_ = true;
  steps_.close();
}

// Wakes every parked rank so that it unwinds: each wait throws once `aborting_` is set.
void Engine::abort_waiting() {
  expects(aborting_, "ranks are aborted once the verdict is settled");
  bool anybody = resume_aside();
  const auto end = [&](Rank rank) {
    anybody = true;
    run_.scheduler->make_ready(rank);
  };
  for (Rank rank = 0; rank < run_.options.world_size; ++rank) {
    if (run_.waits(rank)) {
      end(rank);
    }
  }
  while (!run_.events.empty()) {
    const RunEvent event = run_.events.pop();
    if (event.kind == RunEvent::Kind::wake) {
      end(event.rank);
    }
  }
  expects(anybody, "a rank that has not ended is parked");
}

check::Evidence Engine::evidence() {
  resolve_host_waits();
  for (std::size_t rank = 0; rank < run_.status.size(); ++rank) {
    run_.status[rank].inputs = contexts_[rank].inputs_taken;
    run_.status[rank].ran_out = contexts_[rank].ran_out;
  }
  check::Evidence all =
      run_.notes->evidence(run_.rules->traits().name, run_.status, run_.options.check_leaks);
  all.torch = run_.torch;
  all.new_group_waits_for_all = run_.new_group_waits_for_all();
  return all;
}

void Engine::note_left_handles() {
  if (!watches_handles()) {
    return;
  }
  for (const Handles::Handle& handle : handles_.left()) {
    if (run_.status_of(handle.rank).state == check::RankStatus::State::finished) {
      run_.notes->incidents.observe(run_.now, handle.rank, handle.observed(Observation::Kind::left_unwaited));
    }
  }
}

// Records the final state, once; it needs the tensors and frames of ranks that still wait.
void Engine::conclude() {
  if (!classes_.empty()) {
    return;
  }
  notify_settled();
  note_left_handles();
  if (run_.options.decisions != nullptr &&
      std::ranges::any_of(devices_, [](const DeviceQueue& device) { return device.has_let_overtake(); })) {
    run_.options.decisions->let_overtake();
  }
  if (run_.recorder) {
    end_timeline();
  }
  let_gpus_finish();
  const check::Evidence all = evidence();
  if (!verdict_) {
    verdict_ = check::judge(all);
  }
  classes_ = check::classify(all);
}

void Engine::end_timeline() {
  run_.recorder->end();
  for (const check::GroupEvidence& group : run_.groups) {
    for (std::int64_t seq = group.matcher->first_live(); seq < group.matcher->end(); ++seq) {
      run_.recorder->finished(group, *group.matcher->find(seq), Span::open);
    }
    if (group.messages != nullptr) {
      for (const check::MessageId id : group.messages->pending()) {
        run_.recorder->message(group, group.messages->at(id), Span::open);
      }
    }
  }
  timeline_ = run_.recorder->take();
  run_.recorder.reset();
}

// A process does not wait at its end for calls whose handles it has dropped. Whether each of them could complete must
// not depend on how far the GPUs were when the last process ended: they get to the end of what was launched, outside of
// the run's time.
void Engine::let_gpus_finish() {
  using State = RankStatus::State;
  const bool all_finished = std::ranges::all_of(
      run_.status, [](const RankStatus& status) { return status.state == State::finished; });
  if (!run_.queues_calls || verdict_ || aborting_ || !all_finished) {
    return;
  }
  const Time ended = run_.now;
  for (;;) {
    schedule_full_slots();
    messages_.schedule();
    if (contention_) {
      settle_contention();
    }
    if (run_.events.empty()) {
      break;
    }
    pass_next_events();
  }
  run_.now = ended;
}

Report Engine::report() {
  Report report;
  report.seed = run_.options.seed;
  report.world_size = run_.options.world_size;
  report.backend = run_.rules->traits().name;
  report.torch = run_.torch->name;
  report.verdict = std::move(*verdict_);
  report.ranks = std::move(classes_);
  std::ranges::stable_sort(output_, {}, &OutputLine::rank);
  report.output = std::move(output_);
  report.simulated_time = run_.now;
  report.ops = ops_;
  report.timeouts = timeouts_;
  report.joins = joins_.costs(run_.members, run_.now);
  report.timeline = std::move(timeline_);
  if (run_.options.timeline) {
    for (const GroupMembers& group : run_.members) {
      report.groups.push_back({group.name, RankSet::of(group.ranks)});
    }
  }
  return report;
}

}  // namespace rollcall::sim
