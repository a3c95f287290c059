#include "traces/watch/stall.h"

#include <algorithm>

#include "sim/base/expects.h"

namespace rollcall::watch {

namespace {

// The time that the peers of a process that cannot move are given to notice.
constexpr Duration grace = 2 * second;
// What others do after a process has ended, until they wait for it.
constexpr Duration went_on_without = second;

}  // namespace

Duration Stall::patience(const std::vector<RankMoment>& ranks) const {
  using Activity = RankMoment::Activity;
  const auto is = [&ranks](Activity activity) {
    return std::any_of(ranks.begin(), ranks.end(), [activity](const RankMoment& rank) {
      return rank.activity == activity && !rank.waits;
    });
  };
  // The job went on without a process that ended well before its last move.
  const auto cannot_move = [this](const RankMoment& rank) {
    const auto gone = gone_since_.find(rank.rank);
    return rank.activity == Activity::stopped ||
           (gone != gone_since_.end() && gone->second + went_on_without >= last_move_);
  };
  const Duration usual =
      options_.after ? *options_.after : std::max(options_.least, options_.pauses * longest_pause_);
  if (std::any_of(ranks.begin(), ranks.end(), cannot_move)) {
    return std::min(usual, grace);
  }
  const bool starts =
      std::any_of(ranks.begin(), ranks.end(), [](const RankMoment& rank) { return rank.is_starting; });
  if (options_.after) {
    return usual;
  }
  return is(Activity::works) ? usual * options_.patience_with_work
         : starts            ? usual * options_.patience_at_start
                             : usual;
}

Stall::State Stall::look(Time now, const std::vector<RankMoment>& ranks) {
  bool has_moved = !has_begun_;
  bool somebody_waits = false;
  for (const RankMoment& rank : ranks) {
    const auto [place, is_new] = moves_.emplace(rank.rank, rank.moves);
    has_moved = has_moved || is_new || place->second != rank.moves;
    place->second = rank.moves;
    somebody_waits = somebody_waits || rank.waits;
    if (rank.activity == RankMoment::Activity::gone) {
      gone_since_.emplace(rank.rank, now);
    } else {
      gone_since_.erase(rank.rank);
    }
  }
  if (has_moved || !somebody_waits) {
    expects(now >= last_move_, "time does not go back");
    const Duration pause = now - last_move_;
    if (state_ != State::moves) {
      longest_pause_ = std::max(longest_pause_, pause);
    }
    ended_after_ = state_ == State::stands_still ? pause : ended_after_;
    last_move_ = now;
    state_ = State::moves;
    has_begun_ = true;
    return state_;
  }
  if (state_ != State::stands_still) {
    state_ = silence(now) >= patience(ranks) ? State::stands_still : State::silent;
  }
  return state_;
}

}  // namespace rollcall::watch
