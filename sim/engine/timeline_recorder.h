#pragma once

// Turns what the engine does into a Timeline. Exists only in runs that asked for one.

#include <map>

#include "sim/base/scope_table.h"
#include "sim/c10d/host_calls.h"
#include "sim/c10d/stream.h"
#include "sim/match/evidence.h"
#include "sim/report/remarks.h"
#include "sim/report/timeline.h"

namespace rollcall::sim {

class TimelineRecorder {
 public:
  explicit TimelineRecorder(const ScopeTable& scopes) : scopes_(scopes) {}

  // A member reached the slot at `now`.
  void arrived(check::Slot& slot, Rank group_rank, Rank members, Time now) const;
  // Records the slot's members that completed, or stay in it forever (`end` is then Span::open). `remark`: how long
  // such calls take, and what slowed this one down, if known.
  void finished(const check::GroupEvidence& group, const check::Slot& slot, Time end,
                const std::string& remark = {});
  // A member that got through while others were missing, or died there (`end` is then Span::open).
  void got_through(const check::GroupEvidence& group, const check::Slot& slot, Rank member, Time end);
  void computed(Rank rank, Time start, Time end, const std::string& remark = {});
  // A kernel, of the rank's GPU.
  void ran(Rank rank, Stream stream, const Kernel& kernel, Time start, Time end,
           const std::string& remark = {});
  void step(Rank rank, Time start, std::int64_t number) { timeline_.add_step({start, rank, number}); }
  void message(const check::GroupEvidence& group, const check::Message& message, Time end);
  // A rank's host waits in a call about groups, or on the store, from `now` until it leaves.
  void entered(Rank rank, const GroupMembers& group, const Op& op, std::int64_t seq, Time now);
  void entered(Rank rank, const GroupMembers& world, const StoreCall& call, Time now);
  void left(Rank rank, Time end);
  // Ranks that have not left a host call never will.
  void end();

  Timeline take() { return std::move(timeline_); }

 private:
  Span span_of(const GroupMembers& group, const Op& op, std::int64_t seq, Time start, Time end);
  void enter(Rank rank, const GroupMembers& group, const Op& op, Span span);

  const ScopeTable& scopes_;
  Timeline timeline_;
  std::map<Rank, Span> host_calls_;  // those that hosts are in
};

}  // namespace rollcall::sim
