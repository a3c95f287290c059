#pragma once

// Recorder: a Backend that wraps another and notes every operation as it is issued, in the words of the golden files.
// It does not depend on the inner backend, so the same recorder works with the simulator and with Gloo.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/c10d/forwarding_backend.h"

namespace rollcall::golden {

// One operation, as it was when it was issued.
struct OpRecord {
  OpKind kind = OpKind::barrier;
  std::string group;  // "world", "g1[0,2]"
  GroupId group_id = world_group;
  std::vector<std::int64_t> numel;  // of each input tensor
  // Of each output tensor, if the operation has separate outputs.
  std::optional<std::vector<std::int64_t>> out_numel;
  std::optional<SplitSizes> splits;  // of an all_to_all_single
  std::optional<Dtype> dtype;
  std::optional<ReduceOp> reduce;
  std::optional<Rank> root;  // inside the group
  std::optional<Rank> peer;  // send, recv: inside the group; empty: receives from any source
  std::int32_t tag = 0;      // send, recv
  bool async_op = false;
  bool meta = false;                       // of tensors without data
  std::optional<bool> wait_all_ranks;      // monitored_barrier only; it has no async_op
  std::string site;                        // the innermost scope: "join.count", "user.main_hook"
  std::optional<std::vector<Bits>> input;  // the input's elements, if there are few
  std::int64_t index = 0;                  // on this rank
  std::int64_t collective_index = -1;      // on this rank, in this group; messages are not counted
  std::int64_t seq = -1;                   // the backend's number for it; refused calls have none
  std::string raised;                      // the error of the call itself
  std::string failed;                      // the error of waiting for it

  // Collectives and messages are numbered separately.
  bool is_message() const { return is_point_to_point(kind); }
  bool is_of(const Work& work) const {
    return group_id == work.group() && seq == work.seq() && is_message() == work.is_point_to_point();
  }
};

struct RankLog {
  std::vector<OpRecord> ops;
  std::map<GroupId, std::int64_t> issued;  // collectives per group
};
using RunLog = std::vector<RankLog>;  // by global rank

class Recorder final : public ForwardingBackend {
 public:
  // Both are borrowed and must outlive the recorder. `log` has an entry for every rank.
  Recorder(Backend& inner, RunLog& log) : ForwardingBackend(inner), log_(log) {}

  Work issue(const Op& op) override;
  void wait(const Work& work) override;
  std::vector<Work> issue_batch(std::span<const Op> ops) override;
  ProcessGroup manage(GroupCall call) override;
  void monitored_barrier(const Op& op, const MonitoredBarrierLimits& limits) override;

 private:
  OpRecord& note(const Op& op);
  std::string label_of(GroupId group);

  RunLog& log_;
  std::map<GroupId, ProcessGroup> made_;  // created by this rank while the program runs
  std::set<GroupId> destroyed_;
};

// Returns the golden files' name of an operation: torch's function, except for three that c10d names differently.
std::string_view recorded_name(OpKind kind);
std::string_view recorded_name(const OpRecord& record);  // distinguishes receives from any source

}  // namespace rollcall::golden
