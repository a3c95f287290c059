#pragma once

// MadeGroups: the groups of a run as one rank knows them: those that exist from the start and those that it
// makes. Apart from connecting, new_group does the same on every backend (distributed_c10d.py, new_group).

#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string_view>

#include "real/rank/seat.h"
#include "sim/c10d/host_calls.h"

namespace rollcall::real {

class MadeGroups {
 public:
  // `seat` is borrowed.
  explicit MadeGroups(const Seat& seat);

  // The calling rank's handle, or a null one.
  ProcessGroup find(std::string_view name) const;

  // Called once per group, in the order in which they are made: connects the calling rank if it is a member.
  // `timeout` is 0 if none was requested.
  using Connect = std::function<void(const GroupMembers& members, Duration timeout)>;

  // new_group. Returns when all ranks of the world have come this far. Throws LostPeerError after a timeout.
  ProcessGroup make(const GroupCall& call, const Connect& connect);

  // split_group, likewise: makes one group per list, numbered in their order, and returns the handle to the caller's.
  // `connect` is called once for all of them.
  using ConnectParts = std::function<void(std::span<const GroupMembers* const> parts, Duration timeout)>;
  ProcessGroup split(const GroupCall& call, const ConnectParts& connect);

  // Blocks until all ranks of the world have reached the step of that name.
  void wait_for_all(std::string_view step, std::optional<Duration> timeout) const;

 private:
  Rank count_of(std::string_view step) const;

  const Seat& seat_;
  std::deque<GroupMembers> groups_;  // by GroupId, which is this rank's own number; addresses are stable
  std::int64_t made_ = 0;            // by new_group
  std::map<GroupId, std::int64_t> splits_;  // of a parent
};

// Throws NotImplementedError for a call that a backend does not support.
[[noreturn]] void refuse_call(OpKind kind);

}  // namespace rollcall::real
