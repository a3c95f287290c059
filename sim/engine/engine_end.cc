// The engine's part about the end: the proof of a deadlock, how real ranks would notice, the report.

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

// Nothing is scheduled and ranks are parked: whatever they wait for can never come. The verdict is
// settled here. What follows is only how the real job would notice.
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
  if (was_settled_ || !options_.on_settled) {
    return;
  }
  was_settled_ = true;
  std::vector<RankClass::State> states;
  for (const RankStatus& status : status_) {
    states.push_back(check::state_of(status));
  }
  options_.on_settled(states);
}

// Ranks whose peer's process is gone see its connection close. True when there was one.
bool Engine::fail_lost_peers() {
  const std::string text = rules_->lost_peer_text();
  std::vector<std::pair<Rank, Interruption>> lost;
  const std::vector<bool> torn = text.empty() ? std::vector<bool>() : torn_groups();
  for (std::size_t rank = 0; rank < status_.size() && !text.empty(); ++rank) {
    if (status_[rank].state == RankStatus::State::waiting && has_lost_peer(status_[rank], torn)) {
      lost.emplace_back(static_cast<Rank>(rank), Interruption{false, text});
    }
  }
  take_off(lost);
  for (auto& [rank, interruption] : lost) {
    wake_interrupted(rank, std::move(interruption));
  }
  return !lost.empty();
}

// By group: whether some member's process is gone. Asked once for all waiting ranks.
std::vector<bool> Engine::torn_groups() const {
  std::vector<bool> torn;
  for (const GroupMembers& group : members_) {
    torn.push_back(std::ranges::any_of(group.ranks, [this](Rank rank) { return has_left(rank); }));
  }
  return torn;
}

bool Engine::has_left(Rank rank) const {
  const RankStatus::State state = status_[static_cast<std::size_t>(rank)].state;
  const bool ended = state == RankStatus::State::finished || state == RankStatus::State::raised;
  return state == RankStatus::State::crashed || (ended && options_.finished_ranks_exit);
}

// A message is torn by its other end's end, but for one that was half written by then (gloo::leaves_unread); a
// collective by those that a rank has messages under way with, or where the backend cannot tell, by any member's.
bool Engine::has_lost_peer(const RankStatus& status, const std::vector<bool>& torn) {
  if (status.channel != check::Channel::collectives) {
    return false;  // the store has other connections
  }
  if (!status.in_message()) {
    const check::Stuck* stuck = torn[status.group] ? stuck_of(status) : nullptr;
    return stuck == nullptr ? torn[status.group] : std::ranges::any_of(stuck->peers, [&](Rank peer) {
      return has_left(members_[status.group].ranks[static_cast<std::size_t>(peer)]);
    });
  }
  if (messages_of(status.group).at(status.message).phase == check::Message::Phase::stuck) {
    return false;
  }
  check::Evidence all;
  all.groups = groups_;
  return std::ranges::any_of(check::awaited(all, status), [this](Rank peer) { return has_left(peer); });
}

// Between two portions of steps. The running rank ends here when there is no more memory.
void Engine::look() {
  const Watch& watch = options_.watch;
  if (watch.progress) {
    watch.progress({ops_, ended_, now_});
  }
  const std::int64_t limit = options_.limits.memory_bytes;
  if (!aborting_ && limit > 0 && watch.memory_in_use && watch.memory_in_use() > limit) {
    stop(FindingKind::memory, limit);
    throw RankAborted{};
  }
}

void Engine::stop(FindingKind limit, std::int64_t value) {
  if (!aborting_) {
    notes_->limit = check::LimitIncident{limit, value};
    conclude();
    aborting_ = true;
    steps_.close();  // ranks that have not run yet, and may never call us, end at their first step
  }
}

// Whoever ran into it has been unwound. Everybody else still has to be, which needs no memory; a verdict does, and it
// needs evidence that was written down to the end.
void Engine::run_out_of_memory(const std::bad_alloc& error) {
  try {
    if (dynamic_cast<const TensorTooLarge*>(&error) != nullptr) {
      stop(FindingKind::memory, 0);
      return;
    }
  } catch (const std::bad_alloc&) {
    // Now it is one of those after which nothing can be said.
  }
  is_inconclusive_ = true;
  aborting_ = true;
  steps_.close();
}

// Wakes every parked rank so that it unwinds: each wait throws once `aborting_` is set.
void Engine::abort_waiting() {
  expects(aborting_, "ranks are aborted once the verdict is settled");
  bool anybody = false;
  const auto end = [&](Rank rank) {
    anybody = true;
    scheduler_->make_ready(rank);
  };
  for (std::size_t rank = 0; rank < status_.size(); ++rank) {
    if (status_[rank].state == RankStatus::State::waiting) {
      end(static_cast<Rank>(rank));
    }
  }
  while (!events_.empty()) {
    const Event event = events_.pop();
    if (event.kind == Event::Kind::wake) {
      end(event.rank);
    }
  }
  expects(anybody, "a rank that has not ended is parked");
}

check::Evidence Engine::evidence() {
  resolve_host_waits();
  for (std::size_t rank = 0; rank < status_.size(); ++rank) {
    status_[rank].inputs = contexts_[rank].inputs_taken;
  }
  return notes_->evidence(rules_->traits().name, status_, options_.check_leaks);
}

// Takes the final state down, once; it needs the tensors and frames of ranks that still wait.
void Engine::conclude() {
  if (!classes_.empty()) {
    return;
  }
  notify_settled();
  const check::Evidence all = evidence();
  if (!verdict_) {
    verdict_ = check::judge(all);
  }
  classes_ = check::classify(all);
  if (recorder_) {
    recorder_->end();
    for (const check::GroupEvidence& group : groups_) {
      for (std::int64_t seq = group.matcher->first_live(); seq < group.matcher->end(); ++seq) {
        recorder_->finished(group, *group.matcher->find(seq), Span::open);
      }
      if (group.messages != nullptr) {
        for (const check::MessageId id : group.messages->pending()) {
          recorder_->message(group, group.messages->at(id), Span::open);
        }
      }
    }
  }
}

Report Engine::report() {
  Report report;
  report.seed = options_.seed;
  report.world_size = options_.world_size;
  report.backend = rules_->traits().name;
  report.verdict = std::move(*verdict_);
  report.ranks = std::move(classes_);
  std::ranges::stable_sort(output_, {}, &OutputLine::rank);
  report.output = std::move(output_);
  report.simulated_time = now_;
  report.ops = ops_;
  report.joins = joins_.costs(members_, now_);
  if (recorder_) {
    report.timeline = recorder_->take();
    for (const GroupMembers& group : members_) {
      report.groups.push_back({group.name, RankSet::of(group.ranks)});
    }
  }
  return report;
}

}  // namespace rollcall::sim
