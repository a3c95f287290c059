#pragma once

// Run: the state that the parts of an engine share: the status of the ranks, the time, and the schedule of events. Each
// part owns the state that only it changes (StoreService, GroupCalls, Messages, Deadlines, Deaths) and gets this one.

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "sim/base/encoding.h"
#include "sim/base/expects.h"
#include "sim/engine/backends.h"
#include "sim/engine/cost_model.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/simulate.h"
#include "sim/engine/timeline_recorder.h"
#include "sim/fibers/rank_scheduler.h"
#include "sim/match/evidence.h"
#include "sim/match/run_notes.h"
#include "sim/torch/torch_traits.h"

namespace rollcall::sim {

// An event at a simulated time.
struct RunEvent {
  enum class Kind : std::uint8_t { complete, deliver, wake, kernel };
  Kind kind;
  GroupId group = 0;
  Rank rank = 0;         // wake, kernel
  std::int64_t seq = 0;  // complete: the slot; deliver: a delivery's number; kernel: the stream

  cost::Contention::Key key() const { return {static_cast<int>(kind), group, rank, seq}; }
  friend bool operator==(const RunEvent&, const RunEvent&) = default;
};

// How a rank's wait ends other than by completion.
struct Interruption {
  bool crash = false;
  std::string text;
  const char* signal = "SIGABRT";     // crash: the signal that ends the process
  const char* type = "RuntimeError";  // else: RuntimeError, or the name of a class derived from it
};
using Interruptions = std::vector<std::pair<Rank, Interruption>>;

struct Run {
  explicit Run(const Options& all)
      : options(all),
        torch(&traits_of(all.torch)),
        rules(make_backend_rules(all.backend, *torch)),
        queues_calls(rules->traits().queues_calls),
        orders_calls(all.decisions != nullptr && all.decisions->orders_calls()),
        learner(orders_calls && !queues_calls && all.decisions->compares_states() ? all.decisions : nullptr) {
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // True if new_group waits for all ranks. If communicators are made with their groups, non-members help to split them
  // off the world's communicator (distributed_c10d.py, perform_nocolor_split).
  bool new_group_waits_for_all() const {
    return torch->new_group_waits_for_all || (queues_calls && options.eager_communicators);
  }

  std::size_t ranks() const { return static_cast<std::size_t>(options.world_size); }
  check::RankStatus& status_of(Rank rank) { return status[static_cast<std::size_t>(rank)]; }
  const check::RankStatus& status_of(Rank rank) const { return status[static_cast<std::size_t>(rank)]; }
  bool waits(Rank rank) const { return status_of(rank).waits(); }

  // Must be called for everything that could make the rank continue differently than in another run; see
  // Decisions::learned.
  template <typename... T>
  void learned(Rank rank, const T&... what) const {
    if (learner != nullptr) [[unlikely]] {
      tell_learner(rank, what...);
    }
  }

  // A rank's wait in a host call is over at `end`.
  void release(Rank rank, Time end) {
    learned(rank);
    expects(waits(rank), "only a rank that waits is released");
    expects(end >= now, "nobody is released in the past");
    status_of(rank).state = check::RankStatus::State::running;
    if (recorder) {
      recorder->left(rank, end);
    }
    events.add(end, {.kind = RunEvent::Kind::wake, .rank = rank});
  }

  const Options& options;
  const TorchTraits* torch;
  std::unique_ptr<BackendRules> rules;
  bool queues_calls;        // hosts only queue their calls on GPUs
  bool orders_calls;        // options.decisions decides their order
  Decisions* learner;       // options.decisions, if it compares states and there are no GPUs; or null
  UniformCost host_cost{};  // of calls about groups and on the store, which go from host to host
  std::deque<GroupMembers> members{};                            // by GroupId; addresses are stable
  std::vector<std::unique_ptr<check::GroupMatcher>> matchers{};  // by GroupId
  std::vector<check::GroupEvidence> groups{};                    // the same, as the judge sees them
  std::vector<check::RankStatus> status{};                       // by global rank
  std::unique_ptr<RankScheduler> scheduler{};
  std::unique_ptr<check::RunNotes> notes{};
  std::optional<TimelineRecorder> recorder{};
  EventQueue<RunEvent> events{};
  Time now = 0;

 private:
  // Out of line: the paths that every call takes have no room for it.
  template <typename... T>
  [[gnu::noinline]] void tell_learner(Rank rank, const T&... what) const {
    Encoder encoder;
    (encoder(what), ...);
    learner->learned(rank, encoder.bytes);
  }
};

}  // namespace rollcall::sim
