#pragma once

// Work: the handle of one issued Op, as returned with torch's async_op=True. A plain value: the backend of the rank
// that issued it has the rest, so issuing allocates nothing. Two words, because functions return those in registers: a
// rank that keeps thousands of handles would otherwise wait for each one's trip through memory.

#include <cstdint>

#include "sim/c10d/op.h"

namespace rollcall {

class Work {
 public:
  static constexpr std::uint32_t no_message = 0xffffffff;

  static constexpr std::int64_t seq_max = 0xfffffffe;
  static constexpr std::int64_t no_slot = 0xffffffff;  // of a call that meets no other: its group is closed

  Work() = default;  // nothing to wait for: always completed
  // Call number `seq` of the member `rank` of `group`: at most seq_max, or no_slot. `message` identifies a message.
  Work(GroupId group, Rank rank, std::int64_t seq, std::uint32_t message = no_message)
      : group_(group), rank_(rank), seq_(static_cast<std::uint32_t>(seq)), message_(message) {}

  // Only the rank that issued the operation may call these three.
  //
  // Blocks the rank until the operation is done. Throws what the backend reports as its failure (RuntimeError with the
  // transport's text, for instance). Waiting twice is allowed, except for messages on Gloo.
  void wait() const;
  // Gives up after `timeout` with a RuntimeError. On nccl, this blocks the host, which wait() does not.
  void wait(Duration timeout) const;
  bool is_completed() const;

  bool is_nothing() const { return rank_ < 0; }  // like None, which torch returns to ranks outside the group
  GroupId group() const { return group_; }
  Rank rank() const { return rank_; }                      // inside the group
  std::int64_t seq() const { return std::int64_t{seq_}; }  // counts from 0 per group; messages separately
  bool is_point_to_point() const { return message_ != no_message; }
  std::uint32_t message() const { return message_; }

 private:
  GroupId group_ = 0;
  Rank rank_ = -1;  // -1: nothing to wait for
  std::uint32_t seq_ = 0;
  std::uint32_t message_ = no_message;
};

}  // namespace rollcall
