#pragma once

// The engine: N ranks, one clock, one loop.
//
//   repeat
//     run ranks until every one is parked or done      quiescence: only now may time move
//     match their calls, schedule when they finish
//     nothing is scheduled and ranks are parked         a deadlock, proven: judge it
//     advance the clock to the next event, complete it, wake its ranks
//
// Quiescence makes determinism easy to see: matching waits for all ranks, so the order in
// which they ran cannot change which calls match.

#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/c10d/gloo_admission.h"
#include "sim/c10d/observer.h"
#include "sim/c10d/stream.h"
#include "sim/engine/deadlines.h"
#include "sim/engine/deaths.h"
#include "sim/engine/group_calls.h"
#include "sim/engine/handles.h"
#include "sim/engine/join_meter.h"
#include "sim/engine/messages.h"
#include "sim/engine/run.h"
#include "sim/engine/store_service.h"
#include "sim/engine/watched_steps.h"
#include "sim/nccl/device_queue.h"
#include "sim/torch/torch_traits.h"
#include "sim/train/checkpoint_files.h"

namespace rollcall::sim {

class Engine final : public Backend, private Streams, private Observer {
 public:
  // `options` have been checked. Both are borrowed for the engine's lifetime.
  Engine(const Options& options, const Program& program);
  ~Engine() override;

  // Once per engine.
  Report run();

  const BackendTraits& traits() const override { return run_.rules->traits(); }
  Work issue(const Op& op) override;
  std::vector<Work> issue_batch(std::span<const Op> ops) override;
  void wait(const Work& work) override;
  void call(const Op& op) override;
  void wait_for(const Work& work, Duration timeout) override;
  bool is_completed(const Work& work) override;
  bool drop(const Work& work) override;
  void wait_any(std::span<const Work> works) override;
  Rank source_of(const Work& work) override;
  Time now() const override {
    if (run_.learner != nullptr) [[unlikely]] {
      run_.learner->looked_at_clock();
    }
    return run_.now;
  }
  void compute(Duration duration) override;
  ProcessGroup find_group(std::string_view name) override;
  ProcessGroup manage(GroupCall call) override;
  void monitored_barrier(const Op& op, const MonitoredBarrierLimits& limits) override;
  StoreReply store(const StoreCall& call) override;
  Streams* streams() override { return run_.queues_calls ? this : nullptr; }
  Observer& observer() override { return *this; }

 private:
  rollcall::Event record_event(Stream stream) override;
  void stream_wait(Stream stream, const rollcall::Event& event) override;
  void synchronize(const rollcall::Event& event) override;
  void synchronize_device() override;
  void launch_kernel(Stream stream, const Kernel& kernel) override;
  void settle(Storage& storage) override;

  void print(std::string_view text) override;
  void warn(std::string_view text) override;
  void begin_step(std::int64_t number) override;
  void observe(const Observation& observation) override;
  bool can_forget() override;
  void holds(std::string_view state) override;
  void joined() override;
  void everyone_joined(const ProcessGroup& group, std::int64_t steps, std::int64_t shadow_calls) override;

  struct SlotKey {
    GroupId group;
    std::int64_t seq;
    friend auto operator<=>(const SlotKey&, const SlotKey&) = default;
  };
  // A host's wait for its GPU.
  struct HostWait {
    enum class Kind : std::uint8_t {
      none,
      room,
      collective,
      communicator,
      peer,
      event,
      tensor,
      device,
      streams,
      any
    };
    Kind kind = Kind::none;
    Work work{};           // collective, communicator, peer
    bool has_met = false;  // peer: the other rank has arrived
    rollcall::Event event{};
    const Storage* tensor = nullptr;
    std::span<const Work> works{};  // any: borrowed from the waiting rank
  };

  void make_groups();
  void make_devices();
  // `is_connected`: its communicator exists already, whatever is usual.
  GroupId add_group(const std::string& name, RankList ranks, Duration timeout, bool is_connected = false);
  void make_ranks();
  void run_rank(Rank rank);
  void run_program(Rank rank);
  void end_rank(Rank rank, check::RankStatus::State state, const char* type, const std::string& message);

  static void end_call();
  // True if the rank is unwinding after the verdict, or the group's connections are closed.
  bool meets_nobody(const Op& op) const {
    return aborting_ || (any_broken_ && broken_[op.group]) || is_ignored(op, *run_.torch);
  }
  // True if the call does not go straight to its slot.
  bool goes_elsewhere(const Op& op) const { return run_.queues_calls || is_point_to_point(op.kind); }
  [[gnu::noinline]] Work issue_elsewhere(const Op& op);
  check::Slot& arrive(const Op& op);
  Work issue_nowhere(const Op& op);
  // True for a call that check_device has to check.
  bool is_odd_on(const check::GroupMatcher& matcher, const Op& op) const {
    return op.malformed || !admission_.admits(op) ||
           (admission_.one_gpu_per_rank() && !matcher.uses(op.rank, op.device));
  }
  bool refuses_calls() const;
  void issued(const Op& op, check::Slot& slot);
  void check_device(const Op& op);
  bool raises_late(Rank member, const check::Slot& slot) const;
  Rank user_of_gpu(GroupId group, Device device, Rank rank);
  Rank intruder_on_gpu(GroupId group, Device device, Rank rank) const;
  Rank owner_of_gpu(GroupId group, Device device, Rank rank) const;
  void retain(const Op& op, check::Slot& slot) const;
  [[gnu::noinline]] void wait_otherwise(const Work& work);
  [[gnu::noinline]] bool has_its_fate(Rank member, const check::Slot& slot) const;
  [[noreturn, gnu::noinline]] static void interrupt_closed();
  void block(GroupId group, Rank member, check::Slot& slot);
  void block_watched(GroupId group, Rank member, check::Slot& slot);
  void begin_wait(GroupId group, Rank member, check::Slot& slot);
  [[noreturn]] static void interrupt(const Interruption& interruption);

  DeviceQueue& running_device();
  void await_room();
  // `is_first`: it is a collective, and the rank's first call on a group without a communicator.
  Work launch(const Op& op, bool is_first = false);
  Work launch_message(const Op& op);
  [[gnu::noinline]] void wait_on_device(const Work& work);
  bool has_finished_on_device(const Work& work) const {
    return work.is_point_to_point() ? has_finished_message_on_device(work)
                                    : launches_[work.group()]->has_finished(work.rank(), work.seq());
  }
  bool has_finished_message_on_device(const Work& work) const;
  void wait_on_host(const HostWait& wait);
  bool is_over(Rank rank, const HostWait& wait) const;
  void resolve_host_waits();
  void resolve_host_wait(Rank rank);
  void drain(Rank rank);
  void pump(Rank rank);
  void run_kernel(Rank rank, const DeviceQueue::Action& action);
  void wake_host(Rank rank) {
    if (host_waits_[static_cast<std::size_t>(rank)].kind != HostWait::Kind::none) {
      wake_waiting_host(rank);
    }
  }
  void wake_waiting_host(Rank rank);
  check::Slot* start(LaunchTable& table, Rank member);
  [[gnu::noinline]] void started(const Op& op, check::Slot& slot);
  void finish_on_devices(GroupId group, const check::Slot& slot);
  [[gnu::noinline]] void finish_unequally(GroupId group, const check::Slot& slot);
  void finish_kernel(Rank rank, Stream stream);

  Work post(const Op& op);
  void wait_message(const Work& work);
  void await_message(const Work& work);
  [[gnu::always_inline]] void wait_collective(const Work& work);
  void block_in(const Work& work) { work.is_point_to_point() ? wait_message(work) : wait_collective(work); }
  bool has_completed(const Work& work);
  // True if the handles of all calls are watched; those of messages always are.
  bool watches_handles() const { return run_.options.check_leaks && !run_.queues_calls; }
  void note_left_handles();
  void deliver(GroupId group, check::MessageId send, check::MessageId receive);
  // When the other end of the message came; nothing if it has not.
  std::optional<Time> other_end_came(const Work& work, const Handles::Handle& handle);
  void note_meeting(GroupId group, check::MessageId id, const check::Message& message, Time other_came);
  void note_if_late(GroupId group, const Handles::Handle& handle);
  bool leave_to_clock(GroupId group);
  void finish_message(GroupId group, check::MessageId id, check::Fate fate);
  [[gnu::noinline]] void fail_message(Rank rank, check::Message& message);
  void tell_receiver(GroupId group, const check::Message& receive) const;
  void tell_members(GroupId group, const check::Slot& slot) const;
  void suspend_rank(const void* hint);
  [[gnu::noinline]] void set_deadline(Rank rank);
  [[gnu::noinline]] void take_interruption();
  void enlist(const Work& work);
  void delist(const Work& work);

  // Host calls: engine_host_calls.cc.
  ProcessGroup make_local_group(GroupCall call);
  ProcessGroup make_group(GroupCall call);
  void destroy_group(const GroupCall& call);
  void wait_in_channel(const Op& op, check::Slot& slot, const Deadline& limit);
  void leave_channel(Rank rank);
  bool attend_to_hosts();

  // Communicators made at their first use: engine_first_use.cc.
  bool has_called(GroupId group, Rank member) const;
  void await_communicators(std::span<const Op> batch);
  static Op first_call(GroupId group, Rank member);
  void gather_callers(GroupId group);
  bool is_first_use(const Op& op) const;
  void tell_batches(const Op& op);
  void comes_to(GroupId group);
  void await_communicator(const Work& work);
  void meet_peer(const Work& work);

  // Calls whose order Decisions decides: engine_order.cc.
  bool order_calls();
  std::size_t decide_order(std::size_t ready);
  void tell_of_latecomers();
  bool others_may_come();
  std::string state() const;
  void gather_contenders();
  void gather_requests();
  void gather_postings();
  void gather_arrivals(GroupId group);
  void await_turn(const Op& op, check::MessageId id);
  void let_go_ahead(std::size_t way);

  // Time limits: engine_timeouts.cc.
  bool expire_timeouts();
  void judge_cycle();
  bool waits_without_limit(Rank rank);
  void lift_deadlines(GroupId group, const check::Slot& slot);
  bool lift_deadlines_of_messages();
  void interrupt_all(Interruptions leaving);
  void give_up(Rank rank, Interruptions& expired);
  Interruption timeout_of(Rank rank);
  bool hangs_in_send(const check::RankStatus& status);
  const check::Stuck* stuck_of(const check::RankStatus& status);
  std::vector<Rank> missing_in(const check::RankStatus& status) const;
  void note_timeout(Rank rank);
  std::int64_t next_number(const Op& op);

  // Ranks that die when the scenario says: engine_faults.cc.
  bool crash_before(Time next);
  void die_if_due(Rank rank) const {
    if (!deaths_.none()) [[unlikely]] {
      die_at_last(rank);
    }
  }
  [[gnu::noinline]] void die_at_last(Rank rank) const;
  void withdraw_calls_of_dead();
  void withdraw_calls(Rank rank);
  void withdraw_from(check::GroupMatcher& matcher, Rank member, const check::GroupEvidence& group,
                     bool is_recorded);

  void at_quiescence();
  void schedule_full_slots();
  void settle_contention();
  void pass_next_events();
  bool resume_aside();
  void start_computing(Rank rank, Duration duration);
  void record_work(const RunEvent& event, const cost::Contention::Past& past);
  void process(const RunEvent& event);
  void complete(GroupId group, check::Slot& slot, const std::optional<cost::Contention::Past>& past);
  void settle(GroupId group, check::Slot& slot);
  void deal_fates(GroupId group, check::Slot& slot);
  void end_elsewhere(GroupId group, const check::Slot& slot);
  bool let_some_through();
  bool let_some_through(GroupId group, check::Slot& slot);
  void detach(Rank member, check::Slot& slot) const;
  void wake(Rank rank);
  void wake_interrupted(Rank rank, Interruption interruption);
  void interrupt_rank(Rank rank, Interruption interruption);

  void at_deadlock();
  void notify_settled();
  bool fail_lost_peers();
  std::vector<bool> torn_groups() const;
  bool has_left(Rank rank) const;
  bool has_lost_peer(const check::RankStatus& status, const std::vector<bool>& torn);
  void look();
  void stop(FindingKind limit, std::int64_t value);
  void run_out_of_memory(const std::bad_alloc& error);
  void write_line(bool warning, std::string_view text);
  void check_pending(GroupId group);
  void abort_waiting();

  check::Evidence evidence();
  void conclude();
  void end_timeline();
  void let_gpus_finish();
  Report report();

  struct Contest {
    Contender contender;
    Rank receiver = -1;  // of a message, inside the group
  };
  // A receive that is about to be posted; its rank is parked. `source` is a rank of the group.
  struct Posting {
    Rank rank;
    GroupId group;
    Rank source;
    std::int32_t tag;
    std::int64_t seq;
    Time since;
  };
  struct GpuUser {
    Rank rank = -1;
    bool settled = false;  // the instant of its first use is over: no other rank can precede it
  };

  const Program& program_;
  ScopeTable scopes_;
  CheckpointFiles files_;
  std::vector<RankContext> contexts_;
  std::vector<std::unique_ptr<Backend>> decorators_;  // by rank; empty without options.decorate
  Run run_;                                           // its scheduler ends before contexts do
  const Admission& admission_;
  bool watches_issues_;
  bool has_own_order_;  // of the backend's reductions
  std::unique_ptr<CostModel> cost_;
  std::optional<cost::Contention> contention_;  // where calls slow each other down
  ComputeTimes compute_times_;

  StoreService store_;
  GroupCalls group_calls_;
  Messages messages_;
  Handles handles_;
  Deadlines deadlines_;
  Deaths deaths_;
  std::vector<Rank> died_;  // since the last quiescence

  std::unordered_map<std::string, std::vector<GroupId>> group_ids_;  // only for lookups, never iterated
  std::vector<Rank> absent_;   // by GroupId: members that its communicator still waits for
  std::vector<bool> broken_;   // by GroupId: a timeout closed its connections, or it was destroyed
  std::vector<SlotKey> full_;  // filled up since the last quiescence
  std::unordered_map<Rank, Interruption> interruptions_;  // only for lookups, never iterated
  std::vector<Contest> contests_;                         // the ready ones first
  std::vector<Posting> postings_;
  std::map<std::pair<GroupId, std::pair<Rank, Device>>, GpuUser> gpu_users_;  // by group, host and device

  std::vector<std::unique_ptr<LaunchTable>> launches_;  // by GroupId; empty on backends whose calls block
  std::vector<DeviceQueue> devices_;                    // by global rank; empty likewise
  std::vector<HostWait> host_waits_;                    // by global rank; empty likewise
  std::size_t launch_limit_ = 0;  // things queued on one GPU before its host has to wait
  bool is_in_batch_ = false;      // a batch is one launch

  JoinMeter joins_;
  std::vector<OutputLine> output_;
  std::optional<Verdict> verdict_;  // set at the proof; later events cannot change it
  std::vector<RankClass> classes_;
  Timeline timeline_;
  WatchedSteps steps_;
  Rank ended_ = 0;              // ranks
  std::vector<Time> ended_at_;  // by global rank
  std::vector<Rank> aside_;     // compute until the next event
  std::int64_t ops_ = 0;
  std::int64_t timeouts_ = 0;
  bool any_broken_ = false;
  bool was_settled_ = false;
  bool aborting_ = false;
  bool is_inconclusive_ = false;  // memory ran out in the middle of something: there is no verdict
};

}  // namespace rollcall::sim
