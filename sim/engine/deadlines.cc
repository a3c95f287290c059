#include "sim/engine/deadlines.h"

#include <algorithm>
#include <utility>

namespace rollcall::sim {

void Deadlines::add_group(Duration timeout) {
  expects(timeout >= 0, "a timeout is not negative");
  group_timeouts_.push_back(timeout);
  if (timeout > 0 || run_.options.timeout > 0) {
    of_.resize(run_.ranks());
  }
}

void Deadlines::limit_next(const Deadline& deadline) {
  if (deadline.limit > 0) {
    of_.resize(run_.ranks());
  }
  next_ = deadline;
}

void Deadlines::begin(Rank rank) {
  expects(run_.waits(rank), "only a rank that waits has a deadline");
  const check::RankStatus& status = run_.status_of(rank);
  Deadline deadline = std::exchange(next_, {});
  if (deadline.limit == 0) {
    deadline.own = false;
    const Duration group_max = status.channel == check::Channel::store ? 0 : group_timeouts_[status.group];
    deadline.limit = group_max > 0 ? group_max : run_.options.timeout;
  }
  deadline.since = run_.now;
  if (run_.options.decisions != nullptr && deadline.limit > 0) {
    run_.options.decisions->looked_at_clock();
  }
  of_[static_cast<std::size_t>(rank)] = deadline;
}

std::optional<Time> Deadlines::first(bool own) const {
  std::optional<Time> first;
  for (std::size_t rank = 0; rank < of_.size(); ++rank) {
    const Deadline& deadline = of_[rank];
    if (run_.waits(static_cast<Rank>(rank)) && deadline.limit > 0 && (deadline.own || !own)) {
      const Time mine = deadline.since + deadline.limit;
      first = first ? std::min(*first, mine) : mine;
    }
  }
  return first;
}

bool Deadlines::is_over(Rank rank) const {
  const Deadline& deadline = of(rank);
  return run_.waits(rank) && deadline.limit > 0 && deadline.since + deadline.limit <= run_.now;
}

}  // namespace rollcall::sim
