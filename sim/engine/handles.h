#pragma once

// Handles: the work handles that asynchronous calls have returned to ranks, and whether the ranks have waited for them.
// Used only where calls block (Gloo): on GPUs a wait orders streams and can be repeated.
//
// A message's handle is good for one wait: Gloo's buffer hands out each completion once (gloo/transport/tcp/
// unbound_buffer.cc, waitSend and waitRecv), and a second wait would wait for another one, which never comes.

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "sim/base/encoding.h"
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

    // What the rank did with it.
    Observation observed(Observation::Kind kind) const {
      return {.kind = kind, .op = op, .seq = seq, .site = op.site};
    }
  };

  void give(Rank rank, const Op& op, const Work& work) {
    if (handles_.size() < most) {
      Handle& handle = handles_[key_of(work)];
      handle = {.rank = rank, .op = op, .seq = work.seq()};
      handle.op.tensors = {};
    }
  }
  // A message's handle that its rank has waited for; null if it is not one.
  const Handle* find_used_up(const Work& work) const { return find_message(work, true); }
  // A message's handle that its rank has not waited for; null if it is not one.
  const Handle* find_open(const Work& work) const { return find_message(work, false); }
  // `came`: when the message's other end was posted.
  void met(const Work& work, Time came) {
    if (const auto found = handles_.find(key_of(work)); found != handles_.end()) {
      found->second.other_came = came;
    }
  }
  void waited_for(const Work& work) { finish(work, true); }
  void seen_completed(const Work& work) { finish(work, false); }

  // Writes a rank's handles that it has not waited for, for comparing states.
  void write_state(Encoder& state, Rank rank) const {
    for (const auto& [key, handle] : handles_) {
      if (handle.rank == rank && !handle.was_waited_for) {
        state(std::get<0>(key), std::get<2>(key), handle.seq, handle.is_done);
      }
    }
    state(handles_.size() < most);
  }

  std::vector<Handle> left() const {
    std::vector<Handle> left;
    for (const auto& [key, handle] : handles_) {
      if (!handle.is_done) {
        left.push_back(handle);
      }
    }
    return left;
  }

 private:
  using Key = std::tuple<GroupId, Rank, bool, std::int64_t>;

  static Key key_of(const Work& work) {
    return {work.group(), work.rank(), work.is_point_to_point(), work.seq()};
  }
  const Handle* find_message(const Work& work, bool was_waited_for) const {
    const auto found = handles_.find(key_of(work));
    const bool is_it =
        found != handles_.end() && work.is_point_to_point() && found->second.was_waited_for == was_waited_for;
    return is_it ? &found->second : nullptr;
  }
  void finish(const Work& work, bool waited) {
    if (const auto found = handles_.find(key_of(work)); found != handles_.end()) {
      found->second.is_done = true;
      found->second.was_waited_for = found->second.was_waited_for || waited;
    }
  }

  std::map<Key, Handle> handles_;
};

}  // namespace rollcall::sim
