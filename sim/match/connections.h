#pragma once

// Connections: the data in transit between two members of a group on Gloo, in the order in which it was written. Kept
// only for members that are watched, because a search decides when their messages arrive.
//
// Gloo has one connection per pair of members, and on it three kinds of parcels (gloo/transport/tcp/pair.cc): notices
// that a send was posted, the permission to send once a receive is the sender's, and the bytes. None overtakes another.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "sim/c10d/op.h"
#include "sim/match/matcher.h"
#include "sim/match/moment.h"

namespace rollcall::check {

using MessageId = std::uint32_t;
inline constexpr MessageId no_message = 0xffffffff;

// The moment of arrival of anything still in transit.
inline constexpr std::uint64_t not_arrived = UINT64_MAX;

struct Parcel {
  enum class Kind : std::uint8_t { notice, ready, bytes };

  Kind kind = Kind::notice;
  MessageId id = no_message;  // notice: the send, if it still has this id; others: the receive
  std::int64_t seq = 0;       // of that message
  std::int32_t tag = 0;
  Time written = 0;             // notice
  Fate fate = Fate::completes;  // bytes: the receive's
  std::shared_ptr<const Moment>
      known{};  // notice: when it was written; else when the receive became the sender's
};

class Connections {
 public:
  // The permits of a sender, for one receiver and tag.
  struct Permits {
    std::int64_t left = 0;
    std::deque<std::pair<MessageId, MessageId>> waiting{};  // (send, receive), without a permit yet
  };

  void watch(Rank member) { watched_.insert(member); }
  bool watches(Rank member) const { return watched_.contains(member); }

  // Notices are written when a rank posts its messages. Other parcels are written as soon as possible, while the rank
  // may be anywhere in its program: they go only behind notices of messages that were posted before the rank's
  // `seq`-th, or that the giver of the permission knew of.
  void write(Rank from, Rank to, const Parcel& parcel, std::int64_t seq = 0) {
    std::deque<Parcel>& parcels = parcels_[{from, to}];
    if (parcel.kind == Parcel::Kind::notice) {
      parcels.push_back(parcel);
      return;
    }
    const auto is_before = [&](const Parcel& other) {
      if (other.kind != Parcel::Kind::notice) {
        return other.kind == parcel.kind && other.tag == parcel.tag;
      }
      return other.seq <= seq || parcel.known->comes_after(*other.known);
    };
    const auto last = std::find_if(parcels.rbegin(), parcels.rend(), is_before);
    parcels.insert(last.base(), parcel);
  }
  std::deque<Parcel>& between(Rank from, Rank to) { return parcels_[{from, to}]; }
  const std::map<std::pair<Rank, Rank>, std::deque<Parcel>>& all() const { return parcels_; }
  // Takes back a notice that has not arrived.
  void take_back(Rank from, Rank to, MessageId send) {
    std::erase_if(parcels_[{from, to}], [send](const Parcel& parcel) {
      return parcel.kind == Parcel::Kind::notice && parcel.id == send;
    });
  }

  Permits& permits(Rank sender, Rank receiver, std::int32_t tag) {
    return permits_[{sender, {receiver, tag}}];
  }
  const std::map<std::pair<Rank, std::pair<Rank, std::int32_t>>, Permits>& all_permits() const {
    return permits_;
  }

 private:
  std::set<Rank> watched_;
  std::map<std::pair<Rank, Rank>, std::deque<Parcel>> parcels_;  // by (from, to)
  std::map<std::pair<Rank, std::pair<Rank, std::int32_t>>, Permits> permits_;
};

}  // namespace rollcall::check
