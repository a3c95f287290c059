#pragma once

// Handles: the work handles that asynchronous calls have returned to ranks, and whether the ranks have waited for them.
// Used only where calls block (Gloo): on GPUs a wait orders streams and can be repeated.
//
// A message's handle is good for one wait: Gloo's buffer hands out each completion once (gloo/transport/tcp/
// unbound_buffer.cc, waitSend and waitRecv), and a second wait would wait for another one, which never comes.

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/encoding.h"
#include "sim/base/expects.h"
#include "sim/c10d/observer.h"
#include "sim/c10d/op.h"
#include "sim/c10d/work.h"

namespace rollcall::sim {

class Handles {
 public:
  // Later handles are not watched, so that their number is bounded.
  static constexpr std::size_t most = 100'000;

  struct Handle {
    Rank rank = -1;  // global
    Op op{};         // without tensors
    std::int64_t seq = 0;
    bool is_done = false;  // its rank has waited for it, or has seen it completed
    bool was_waited_for = false;
    Time other_came = 0;  // a message's other end, once it has

    void waited_for() { is_done = was_waited_for = true; }

    // What the rank did with it.
    Observation observed(Observation::Kind kind) const {
      return {.kind = kind, .op = op, .seq = seq, .site = op.site};
    }
  };

  void give(Rank rank, const Op& op, const Work& work) {
    if (handles_.size() == most) {
      return;
    }
    handles_.reserve(most);  // addresses stay; memory that is not used costs nothing
    Lane& lane = lane_for(work);
    expects(lane.last < work.seq(), "a member's calls are numbered upwards");
    lane.last = work.seq();
    last_ = std::max(last_, work.seq());
    lane.given.push_back(&handles_.emplace_back(Handle{.rank = rank, .op = op, .seq = work.seq()}));
    handles_.back().op.tensors = {};
  }
  // The handle of an asynchronous call; null if it is not watched.
  Handle* find(const Work& work) {
    if (work.seq() > last_) {
      return nullptr;  // the usual case once there are enough
    }
    const auto member = static_cast<std::size_t>(work.rank());
    if (work.group() >= members_.size() || member >= members_[work.group()].size()) {
      return nullptr;
    }
    Lane& lane = members_[work.group()][member][work.is_point_to_point()];
    if (work.seq() > lane.last) {
      return nullptr;
    }
    if (work.seq() == lane.last) {
      return lane.given.back();
    }
    const auto found = std::ranges::lower_bound(lane.given, work.seq(), {}, &Handle::seq);
    return (*found)->seq == work.seq() ? *found : nullptr;
  }
  // A message's handle that its rank has not waited for; null if it is not one.
  const Handle* find_open(const Work& work) {
    const Handle* handle = work.is_point_to_point() ? find(work) : nullptr;
    return handle != nullptr && !handle->was_waited_for ? handle : nullptr;
  }

  // Writes a rank's handles that it has not waited for, for comparing states.
  void write_state(Encoder& state, Rank rank) const {
    for_each([&](GroupId group, bool is_message, const Handle& handle) {
      if (handle.rank == rank && !handle.was_waited_for) {
        state(group, is_message, handle.seq, handle.is_done);
      }
    });
    state(handles_.size() < most);
  }

  std::vector<Handle> left() const {
    std::vector<Handle> left;
    for_each([&](GroupId, bool, const Handle& handle) {
      if (!handle.is_done) {
        left.push_back(handle);
      }
    });
    return left;
  }

 private:
  // A member's handles in a group, of its collectives or of its messages.
  struct Lane {
    std::vector<Handle*> given;  // ascending by seq
    std::int64_t last = -1;      // the highest seq
  };
  using Lanes = std::array<Lane, 2>;  // of collectives, of messages

  Lane& lane_for(const Work& work) {
    const auto grown = [](auto& list, std::size_t at) -> auto& {
      if (at >= list.size()) {
        list.resize(at + 1);
      }
      return list[at];
    };
    return grown(grown(members_, work.group()),
                 static_cast<std::size_t>(work.rank()))[work.is_point_to_point()];
  }

  // In the order of groups, members, collectives before messages, and numbers.
  template <class Visitor>
  void for_each(const Visitor& visit) const {
    for (std::size_t group = 0; group < members_.size(); ++group) {
      for (const Lanes& lanes : members_[group]) {
        for (std::size_t is_message = 0; is_message < lanes.size(); ++is_message) {
          for (const Handle* handle : lanes[is_message].given) {
            visit(static_cast<GroupId>(group), is_message != 0, *handle);
          }
        }
      }
    }
  }

  std::vector<std::vector<Lanes>> members_;  // by group and member
  std::vector<Handle> handles_;              // in the order of calls
  std::int64_t last_ = -1;                   // the highest seq of any lane
};

}  // namespace rollcall::sim
