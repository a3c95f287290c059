#pragma once

// Causes: what each rank can know about the others, through messages and collectives that have ended for it. Kept only
// for runs in which Decisions decides when messages arrive: a rank's action cannot come before the action of another
// rank that caused it.

#include <limits>
#include <map>
#include <memory>
#include <tuple>

#include "sim/engine/run.h"
#include "sim/match/moment.h"

namespace rollcall::sim {

class Causes {
 public:
  explicit Causes(std::size_t ranks) : now_(ranks) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      now_[rank] = {static_cast<Rank>(rank), std::vector<std::uint32_t>(ranks)};
    }
  }

  // A rank posts a message.
  std::shared_ptr<const check::Moment> post(Rank rank) {
    check::Moment& now = now_[static_cast<std::size_t>(rank)];
    ++now.seen[static_cast<std::size_t>(rank)];
    return std::make_shared<const check::Moment>(now);
  }
  // A message has ended, and the rank that waits for it knows about its other end; `member` is the rank in the group.
  void end(GroupId group, Rank member, std::int64_t seq, std::shared_ptr<const check::Moment> other) {
    ended_[{group, member, seq}] = std::move(other);
  }
  void waited_for_message(Rank rank, const Work& work) {
    const auto found = ended_.find({work.group(), work.rank(), work.seq()});
    if (found != ended_.end()) {
      now_[static_cast<std::size_t>(rank)].join(*found->second);
      ended_.erase(found);
    }
  }
  // A rank has reached a collective. Collectives with a root need not wait for all ranks: the only certainty is that
  // data has come from the root, or reached it.
  void call(Rank rank, const Op& op, std::int64_t seq) {
    if (row_of(op.kind).root != Root::source || op.root == op.rank) {
      called_[{op.group, seq}].join(now_[static_cast<std::size_t>(rank)]);
    }
  }
  // `hears_all`: the rank knows about all others, not just that its own part is done.
  void waited_for_call(Rank rank, std::pair<GroupId, std::int64_t> call, bool hears_all) {
    const auto found = called_.find(call);
    if (found != called_.end() && hears_all) {
      now_[static_cast<std::size_t>(rank)].join(found->second);
    }
  }

  // For comparing states.
  void write_state(Encoder& state, const check::LiveNotices& notices) const {
    for (const check::Moment& moment : now_) {
      notices.write(state, moment);
    }
    for (const auto& [call, moment] : ended_) {
      state(std::get<0>(call), std::get<1>(call), std::get<2>(call));
      notices.write(state, *moment);
    }
    state(GroupId{no_group});
    for (const auto& [call, moment] : called_) {
      state(call.first, call.second);
      notices.write(state, moment);
    }
    state(GroupId{no_group});
  }

 private:
  static constexpr GroupId no_group = std::numeric_limits<GroupId>::max();  // ends a list

  std::vector<check::Moment> now_;  // by rank
  std::map<std::tuple<GroupId, Rank, std::int64_t>, std::shared_ptr<const check::Moment>> ended_;
  std::map<std::pair<GroupId, std::int64_t>, check::Moment> called_;
};

}  // namespace rollcall::sim
