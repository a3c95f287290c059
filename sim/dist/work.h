#pragma once

// Work: the ticket for one issued Op, as torch's async_op=True returns. A small value, not an object
// of its own: the backend that issued it knows the rest, so issuing allocates nothing.

#include <cstdint>

#include "sim/dist/op.h"

namespace rollcall {

class Backend;

class Work {
 public:
  static constexpr std::uint32_t no_message = 0xffffffff;

  Work() = default;  // nothing to wait for: always completed
  Work(Backend& backend, GroupId group, Rank rank, std::int64_t seq)
      : backend_(&backend), seq_(seq), group_(group), rank_(rank) {}

  // The same for a send or recv, which the backend finds again by `message`.
  static Work point_to_point(Backend& backend, GroupId group, Rank rank, std::int64_t seq,
                             std::uint32_t message) {
    Work work(backend, group, rank, seq);
    work.message_ = message;
    return work;
  }

  // Blocks the rank until the operation is done. Throws what the backend reports as its failure
  // (RuntimeError with the transport's text, for instance). Waiting twice is allowed.
  void wait() const;
  // Gives up after `timeout` with a RuntimeError. On nccl the host blocks, which wait() does not.
  void wait(Duration timeout) const;
  bool is_completed() const;

  GroupId group() const { return group_; }
  Rank rank() const { return rank_; }        // inside the group
  std::int64_t seq() const { return seq_; }  // counts from 0 per group, point to point apart
  bool is_point_to_point() const { return message_ != no_message; }
  std::uint32_t message() const { return message_; }

 private:
  Backend* backend_ = nullptr;
  std::int64_t seq_ = -1;
  GroupId group_ = 0;
  Rank rank_ = -1;
  std::uint32_t message_ = no_message;
};

}  // namespace rollcall
