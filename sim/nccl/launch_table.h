#pragma once

// The collectives of one group that hosts have launched on their GPUs and that are not over.
//
//   row    call k of the group, which is usually the same for all members and is stored once
//   lane   one member's way through the rows, in launch order: NCCL's own stream of that communicator. Its places
//          are contiguous: a host that runs ahead writes one after the other, and when four rows complete in turn,
//          only the first has to fetch them

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/base/expects.h"
#include "sim/c10d/op.h"
#include "sim/match/matcher.h"

namespace rollcall::sim {

class LaunchTable {
 public:
  // One member's call in a row.
  struct Place {
    Storage* input = nullptr;    // kept alive through Storage::begin_use
    std::uint32_t launched = 0;  // number among the launches of its GPU
    Stream stream;
    bool ready = false;   // its stream has reached it
    bool is_own = false;  // not the row's call: see Row::own
  };
  struct Lane {
    std::int64_t launched = 0;  // calls; the next is number `launched`
    std::int64_t finished = 0;  // calls that are over; the front is number `finished`
    bool running = false;       // the front

    bool is_empty() const { return finished == launched; }
  };

  explicit LaunchTable(GroupId group, Rank members)
      : group_(group),
        lanes_(static_cast<std::size_t>(members)),
        ring_(2),
        mask_(1),
        places_(lanes_.size() * stride()) {}
  ~LaunchTable();
  LaunchTable(const LaunchTable&) = delete;
  LaunchTable& operator=(const LaunchTable&) = delete;

  // Adds the next call of op.rank and returns its number in the group. The caller need not keep its tensors and lists
  // alive. `number`: among the launches of its GPU; `ready`: its stream has already reached it.
  std::int64_t launch(const Op& op, std::uint32_t number, bool ready = false) {
    const auto member = static_cast<std::size_t>(op.rank);
    const std::int64_t seq = lanes_[member].launched;
    Row& row = seq == end_ ? open(op) : *ring_[index(seq)];
    const bool is_own =
        (!row.plain && is_special(op)) || op.malformed || !check::same_in_reports(row.call, op);
    if (is_own) [[unlikely]] {
      keep_own(row, op);  // may throw for lack of memory: nothing is launched then
    }
    lanes_[member].launched = seq + 1;
    Place& own = place(op.rank, seq);  // written field by field: a whole Place would be assembled first
    own.input = op.tensors.input;
    own.launched = number;
    own.stream = op.stream;
    own.ready = ready;
    own.is_own = is_own;
    if (op.tensors.input != nullptr) {
      op.tensors.input->begin_use();
    }
    return seq;
  }
  // The member's front is over. The call behind it starts if it is ready. Returns its place then, null otherwise.
  const Place* advance(Rank member) {
    Lane& own = lane(member);
    const Place* const places = &places_[first_of(member)];
    leave(own, member, places[index(own.finished)]);
    if (own.is_empty()) {
      return nullptr;
    }
    const Place& next = places[index(own.finished)];
    own.running = next.ready;
    return next.ready ? &next : nullptr;
  }
  // The same, but nothing starts.
  void finish(Rank member) { leave(lane(member), member, front(member)); }

  GroupId group() const { return group_; }
  const Lane& lane(Rank member) const { return lanes_[static_cast<std::size_t>(member)]; }
  Lane& lane(Rank member) { return lanes_[static_cast<std::size_t>(member)]; }
  bool has_finished(Rank member, std::int64_t seq) const { return lane(member).finished > seq; }

  // The place of a call that is launched and not over.
  Place& place(Rank member, std::int64_t seq) { return places_[first_of(member) + index(seq)]; }
  const Place& place(Rank member, std::int64_t seq) const { return places_[first_of(member) + index(seq)]; }
  const Place& front(Rank member) const { return place(member, lane(member).finished); }
  // True if the member's next call may start as far as its own lane is concerned.
  bool is_startable(Rank member) const {
    const Lane& own = lane(member);
    return !own.running && !own.is_empty() && place(member, own.finished).ready;
  }

  // The call of a row's members that have no call of their own: without a rank, a device and tensors.
  const Op& call(std::int64_t seq) const { return ring_[index(seq)]->call; }
  OpKind kind_of(Rank member, std::int64_t seq) const;
  // The member's call, without its device.
  Op op_of(Rank member, std::int64_t seq) const;

 private:
  // A call that is not the row's, or has lists.
  struct Own {
    Op op;  // its lists are these:
    std::unique_ptr<TensorList> inputs;
    std::unique_ptr<TensorList> outputs;
    std::unique_ptr<SplitSizes> splits;
  };
  // The fields that every launch reads are in the first cache line.
  struct alignas(64) Row {
    Rank finished = 0;
    bool plain = true;  // its call is one of those that need no Op of their own
    Op call;
    std::vector<std::unique_ptr<Own>> own;  // by member; empty while no member has one
  };

  static bool is_special(const Op& op) { return op.malformed || check::needs_every_op(op); }
  Row& open(const Op& op);
  void grow();
  void keep_own(Row& row, const Op& op) const;
  static void drop_own(Row& row, Rank member);
  void retire();
  void leave(Lane& own, Rank member, const Place& front) {
    expects(own.running, "a collective that finishes has started");
    Row& row = *ring_[index(own.finished)];
    end_uses(row, member, front);
    own.running = false;
    ++own.finished;
    if (++row.finished == static_cast<Rank>(lanes_.size())) [[unlikely]] {
      retire();
    }
  }
  static void end_uses(Row& row, Rank member, const Place& place) {
    if (place.is_own) [[unlikely]] {
      drop_own(row, member);
    }
    if (place.input != nullptr) {
      place.input->end_use();
    }
  }
  std::size_t index(std::int64_t seq) const { return static_cast<std::size_t>(seq) & mask_; }
  // The distance from one member's places to the next one's. Not a power of two: they would fall into the same cache
  // sets.
  std::size_t stride() const { return mask_ + 2; }
  std::size_t first_of(Rank member) const { return static_cast<std::size_t>(member) * stride(); }

  GroupId group_;
  std::vector<Lane> lanes_;                 // by member
  std::int64_t base_ = 0;                   // rows below are over for all members
  std::int64_t end_ = 0;                    // one past the latest row; end_ - base_ <= ring_.size()
  std::vector<std::unique_ptr<Row>> ring_;  // a power of two of rows, reused
  std::size_t mask_;                        // the ring's size, minus one
  std::vector<Place> places_;               // by member, then by row; set while launched and not over
};

}  // namespace rollcall::sim
