#pragma once

// A rank's Flight Recorder: a Backend around another one that keeps what PyTorch's recorder would keep of the calls
// that pass through. So a simulated hang leaves the same evidence as a real one.
//
// On nccl it keeps collectives and messages, as ProcessGroupNCCL.cpp records them (initWork, collective,
// pointToPoint, endCoalescing) with its defaults: no timing, so a call is "scheduled" until it has completed. On
// gloo it keeps collectives only, as ProcessGroupGloo.cpp does (enqueue), and of each only that it has ended, not how
// or when; messages and monitored_barrier leave a gap in the numbers. Neither records calls about groups and the
// store. A tensor's shape has one dimension here: its number of elements.

#include <map>
#include <string>
#include <vector>

#include "sim/c10d/forwarding_backend.h"
#include "sim/diagnose/dump.h"
#include "traces/dumps/dump_tables.h"

namespace rollcall::traces {

// The state that the recorders of one job share.
struct JobRecording {
  Duration timeout = 0;                              // of calls; 0: torch's default for the backend
  std::map<std::string, Duration> group_timeouts{};  // by name; 0: the job's
  // Whether all ranks run one program, whose lines then say which calls belong together. Otherwise only labels do.
  bool one_program = true;

  DumpTables tables{};
  std::map<std::string, std::uint32_t> lines_of_labels{};  // where a label was first seen
};

class DumpRecorder final : public ForwardingBackend {
 public:
  // `inner` and `job` are borrowed.
  DumpRecorder(Backend& inner, Rank rank, JobRecording& job);

  Work issue(const Op& op) override;
  std::vector<Work> issue_batch(std::span<const Op> ops) override;
  void monitored_barrier(const Op& op, const MonitoredBarrierLimits& limits) override;
  ProcessGroup find_group(std::string_view name) override;
  ProcessGroup manage(GroupCall call) override;

  // Returns what the recorder holds now; later calls are not recorded. `standstill`: the watchdog's limit has
  // passed without progress, and it has given up on the unfinished calls.
  check::RankDump finish(bool standstill);

 private:
  struct Group {
    ProcessGroup handle;
    std::uint32_t number = 0;  // in JobRecording::tables
    std::int64_t collectives = 0;
    std::int64_t messages = 0;
    std::uint32_t unrecorded = 0;  // operations since the last record
    check::DumpStatus status;
    std::uint32_t timeout_ms = 0;
  };
  // A record that may still complete, which it does with the last of its works.
  struct Pending {
    std::size_t record = 0;
    std::vector<Work> works;
  };

  Group& group_of(GroupId id);
  void remember(const ProcessGroup& handle, Duration timeout);
  Duration timeout_of(const GroupMembers& members) const;
  void pass_over(GroupId group, std::uint32_t operations, std::int64_t numbers);
  std::size_t record(const Op& op, Group& group, const check::DumpCall& call);
  std::uint32_t stack_of(const Op& op);
  bool is_over(const Pending& pending);
  void complete(const Pending& pending);
  void notice();

  JobRecording& job_;
  bool records_messages_;
  bool finished_ = false;
  std::map<GroupId, ProcessGroup> handles_;
  std::map<GroupId, Duration> group_timeouts_;  // of groups that were made with one
  std::map<GroupId, Group> groups_;             // that this rank has used
  std::vector<Pending> pending_;                // in order of issue
  std::size_t first_pending_ = 0;
  check::RankDump dump_;
};

}  // namespace rollcall::traces
