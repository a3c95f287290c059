#pragma once

// Work: the ticket for one issued Op, as torch's async_op=True returns. Not an object of its own: the backend of
// the rank that issued it knows the rest, so issuing allocates nothing. Two words, because functions return those in
// registers: a rank that keeps thousands of tickets would else wait for each to get through memory.

#include <cstdint>

#include "sim/c10d/op.h"

namespace rollcall {

class Work {
 public:
  static constexpr std::uint32_t no_message = 0xffffffff;

  static constexpr std::int64_t seq_max = 0xfffffffe;
  static constexpr std::int64_t no_slot = 0xffffffff;  // of a call that meets nobody: its group is closed

  Work() = default;  // nothing to wait for: always completed
  // Of the member `rank` of `group`, its call number `seq`: at most seq_max, or no_slot. Messages are found again by
  // `message`.
  Work(GroupId group, Rank rank, std::int64_t seq, std::uint32_t message = no_message)
      : group_(group), rank_(rank), seq_(static_cast<std::uint32_t>(seq)), message_(message) {}

  // All three are for the rank that issued the operation.
  //
  // Blocks the rank until the operation is done. Throws what the backend reports as its failure
  // (RuntimeError with the transport's text, for instance). Waiting twice is allowed, but for messages on Gloo.
  void wait() const;
  // Gives up after `timeout` with a RuntimeError. On nccl the host blocks, which wait() does not.
  void wait(Duration timeout) const;
  bool is_completed() const;

  bool is_nothing() const { return rank_ < 0; }  // as is None, which torch gives to ranks outside the group
  GroupId group() const { return group_; }
  Rank rank() const { return rank_; }                      // inside the group
  std::int64_t seq() const { return std::int64_t{seq_}; }  // counts from 0 per group, point to point apart
  bool is_point_to_point() const { return message_ != no_message; }
  std::uint32_t message() const { return message_; }

 private:
  GroupId group_ = 0;
  Rank rank_ = -1;  // -1: nothing to wait for
  std::uint32_t seq_ = 0;
  std::uint32_t message_ = no_message;
};

}  // namespace rollcall
