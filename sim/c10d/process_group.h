#pragma once

// ProcessGroup: one rank's handle to a group of ranks. A small value; the membership is shared.

#include <memory>
#include <string>
#include <vector>

#include "sim/c10d/op.h"

namespace rollcall {

// The members of a group. Immutable once made; one per group of a run, in order of creation.
struct GroupMembers {
  GroupId id = world_group;
  std::string name;         // "world", or the name the program gave
  std::vector<Rank> ranks;  // global ranks, ascending; index = rank inside the group

  Rank size() const { return static_cast<Rank>(ranks.size()); }
  // The rank inside the group, or -1 for a non-member. O(log size), O(1) for the world.
  Rank rank_of(Rank global) const;
};

class ProcessGroup {
 public:
  ProcessGroup() = default;  // no group: functions that take one then mean the world
  ProcessGroup(const GroupMembers& members, Rank rank) : members_(&members), rank_(rank) {}

  // The handle that new_group returns to ranks outside the group.
  static ProcessGroup non_member();

  explicit operator bool() const { return members_ != nullptr; }
  GroupId id() const { return members().id; }
  const std::string& name() const { return members().name; }
  Rank size() const { return rank_ < 0 ? -1 : members_->size(); }  // -1 for a non-member, as in torch
  Rank rank() const { return rank_; }                              // -1 for a non-member
  bool is_member() const { return rank_ >= 0; }
  // Raises torch's error if there is no group: the default one may have been destroyed.
  const GroupMembers& members() const {
    if (members_ == nullptr) [[unlikely]] {
      refuse();
    }
    return *members_;
  }

  // Two handles are equal when they name the same group.
  friend bool operator==(const ProcessGroup& a, const ProcessGroup& b) { return a.members_ == b.members_; }

 private:
  [[noreturn]] static void refuse();

  const GroupMembers* members_ = nullptr;  // owned by the backend's run
  Rank rank_ = -1;
};

}  // namespace rollcall
