#pragma once

// The engine: N ranks, one clock, one loop.
//
//   repeat
//     run ranks until every one is parked or done      quiescence: only now may time move
//     match what they asked for, give it a finishing time
//     nothing is scheduled and ranks are parked         a deadlock, proven: judge it
//     advance the clock to the next event, complete it, wake its ranks
//
// Quiescence is what makes determinism easy to believe: matching waits for everyone, so the order in
// which ranks ran cannot change what is matched.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/check/evidence.h"
#include "sim/engine/backend_rules.h"
#include "sim/engine/cost_model.h"
#include "sim/engine/device_queue.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/incidents.h"
#include "sim/engine/rank_scheduler.h"
#include "sim/engine/simulate.h"
#include "sim/engine/timeline_recorder.h"

namespace rollcall::sim {

class Engine final : public Backend {
 public:
  // `options` have been checked. Both are borrowed for the engine's lifetime.
  Engine(const Options& options, const Program& program);
  ~Engine() override;

  // Once per engine.
  Report run();

  std::string_view name() const override { return rules_->name(); }
  Work issue(const Op& op) override;
  std::vector<Work> issue_batch(std::span<const Op> ops) override;
  void wait(const Work& work) override;
  bool is_completed(const Work& work) override;
  Rank source_of(const Work& work) override;
  void compute(Duration duration) override;
  ProcessGroup find_group(std::string_view name) override;
  void print(std::string_view text) override;
  void warn(std::string_view text) override;
  rollcall::Event record_event(Stream stream) override;
  void stream_wait(Stream stream, const rollcall::Event& event) override;
  void synchronize(const rollcall::Event& event) override;
  void synchronize_device() override;
  void launch_kernel(Stream stream, Duration duration) override;
  void settle(Storage& storage) override;

 private:
  struct Event {
    enum class Kind : std::uint8_t { complete, deliver, wake, kernel };
    Kind kind;
    GroupId group = 0;
    Rank rank = 0;         // wake, kernel
    std::int64_t seq = 0;  // complete: the slot; deliver: an index into deliveries_; kernel: the stream
  };
  struct SlotKey {
    GroupId group;
    std::int64_t seq;
    friend auto operator<=>(const SlotKey&, const SlotKey&) = default;
  };
  // How a rank's wait ends when not by completion.
  struct Interruption {
    bool crash = false;
    std::string text;
  };

  // What a host waits for on its GPU.
  struct HostWait {
    enum class Kind : std::uint8_t { none, room, collective, event, tensor, device, streams };
    Kind kind = Kind::none;
    GroupId group = 0;
    std::int64_t seq = 0;
    rollcall::Event event{};
    const Storage* tensor = nullptr;
  };

  void make_groups();
  void make_devices();
  void make_ranks();
  void run_rank(Rank rank);
  void end_rank(Rank rank, check::RankStatus::State state, const char* type, const std::string& message);

  static void end_call();
  Work issue_nowhere(const Op& op);
  void issued(const Op& op, check::Slot& slot);
  void check_device(const Op& op);
  bool raises_late(const Work& work, const check::Slot& slot) const;
  Rank user_of_gpu(GroupId group, Device device, Rank rank);
  void retain(const Op& op, check::Slot& slot) const;
  void block(const Work& work, check::Slot& slot);
  [[noreturn]] void interrupt(const Interruption& interruption);

  DeviceQueue& running_device();
  Work launch(const Op& op);
  void wait_on_device(const Work& work);
  bool has_finished_on_device(const Work& work) const;
  void wait_on_host(const HostWait& wait);
  bool is_over(Rank rank, const HostWait& wait) const;
  void resolve_host_waits();
  void drain(Rank rank);
  void pump(Rank rank);
  void start(const Op& op);
  void finish_on_devices(GroupId group, const check::Slot& slot);
  void finish_message_on_device(Rank rank, const check::Message& message);
  void finish_kernel(Rank rank, Stream stream);
  void fail_on_device(Rank rank, Interruption interruption);

  Work post(const Op& op);
  check::MessageId plan_message(const Op& op);
  void post_planned(GroupId group, check::MessageId id);
  void wait_message(const Work& work);
  check::MessageMatcher& messages_of(GroupId group);
  void schedule_messages();
  void deliver(GroupId group, check::MessageId send, check::MessageId receive);
  void finish_message(GroupId group, check::MessageId id, check::Fate fate);
  void suspend_rank(const void* hint);

  void at_quiescence();
  void schedule_full_slots();
  void process(const Event& event);
  void complete(GroupId group, check::Slot& slot);
  void settle(GroupId group, check::Slot& slot);
  void deal_fates(GroupId group, check::Slot& slot);
  void wake(Rank rank);
  void wake_interrupted(Rank rank, Interruption interruption);

  void at_deadlock();
  bool tell_lost_peers();
  std::optional<Time> next_deadline() const;
  bool expire_timeouts();
  std::vector<bool> torn_groups() const;
  bool has_left(Rank rank) const;
  bool has_lost_peer(const check::RankStatus& status, const std::vector<bool>& torn) const;
  Interruption timeout_of(const check::RankStatus& status) const;
  void stop(const char* limit, std::int64_t value);
  void write_line(bool warning, std::string_view text);
  void check_pending(GroupId group);
  void abort_waiting();

  check::Evidence evidence();
  void conclude();
  Report report();

  const Options& options_;
  const Program& program_;
  std::unique_ptr<BackendRules> rules_;
  Admission admission_;
  bool watches_issues_;
  bool has_own_order_;  // of the backend's reductions
  std::unique_ptr<CostModel> cost_;
  ComputeTimes compute_times_;
  ScopeTable scopes_;
  std::deque<GroupMembers> members_;                            // by GroupId; addresses are stable
  std::vector<std::unique_ptr<check::GroupMatcher>> matchers_;  // by GroupId
  std::vector<check::GroupEvidence> groups_;                    // the same, as the judge sees them
  std::unordered_map<std::string, GroupId> group_ids_;          // looked up, never iterated
  std::vector<RankContext> contexts_;
  std::vector<std::unique_ptr<Backend>> decorators_;  // by rank; empty without options.decorate
  std::vector<check::RankStatus> status_;             // by global rank
  std::vector<Time> wait_since_;                      // by global rank; only with options.timeout
  std::unique_ptr<RankScheduler> scheduler_;
  EventQueue<Event> events_;
  // Messages that arrive at one time, in one group. The vectors are reused.
  struct Delivery {
    GroupId group = 0;
    std::vector<std::pair<check::MessageId, check::MessageId>> pairs;  // (send, receive)
  };

  std::vector<std::unique_ptr<check::MessageMatcher>> messengers_;  // by GroupId; null while nobody sends
  std::vector<GroupId> posted_groups_;  // groups with messages posted since the last quiescence
  std::vector<Delivery> deliveries_;
  std::vector<std::size_t> free_deliveries_;
  std::vector<SlotKey> full_;  // filled up since the last quiescence
  std::vector<bool> broken_;   // by GroupId: a timeout closed its connections
  struct GpuUser {
    Rank rank = -1;
    bool settled = false;  // the instant in which it came is over: nobody can come before it
  };
  std::map<std::pair<GroupId, std::pair<Rank, Device>>, GpuUser> gpu_users_;  // by group, host and device
  std::unordered_map<Rank, Interruption> interruptions_;                      // looked up, never iterated
  std::vector<DeviceQueue> devices_;  // by global rank; empty on backends whose calls block
  std::vector<HostWait> host_waits_;  // the same
  std::size_t launch_limit_ = 0;      // things queued on one GPU before its host has to wait
  std::unique_ptr<IncidentLog> incidents_;
  std::optional<TimelineRecorder> recorder_;
  std::vector<check::Exception> exceptions_;
  std::unordered_map<std::string, std::int32_t> exception_ids_;  // looked up, never iterated
  std::vector<OutputLine> output_;
  std::optional<check::LimitIncident> limit_;
  std::optional<Verdict> verdict_;  // set at the proof; what follows cannot change it
  std::vector<RankClass> classes_;
  std::int64_t steps_left_ = 0;
  std::int64_t ops_ = 0;
  Time now_ = 0;
  bool any_broken_ = false;
  bool queues_launches_ = false;  // hosts only queue their calls on GPUs
  bool aborting_ = false;
};

}  // namespace rollcall::sim
