#pragma once

// Deadlines: how long ranks wait. A rank gives up when its call, its group or the run says how long it may. Only
// limits that a call names itself can end a wait before it is proven that nothing else can: a program that gives one
// is prepared for its end.

#include <optional>
#include <vector>

#include "sim/engine/run.h"

namespace rollcall::sim {

// How long a rank's wait may take.
struct Deadline {
  Time since = 0;
  Duration limit = 0;      // 0: none
  bool own = false;        // the program's call said so, which makes the end of it an event like others
  bool names_all = false;  // monitored_barrier's wait_all_ranks
  bool of_wait = false;    // work.wait's: the call itself goes on
};

class Deadlines {
 public:
  // `run` is borrowed.
  explicit Deadlines(Run& run) : run_(run) {}

  // The run has one more group. `timeout`: of its calls; 0: the run's.
  void add_group(Duration timeout);

  // True while no wait can have a limit.
  bool none() const { return of_.empty(); }
  const Deadline& of(Rank rank) const { return of_[static_cast<std::size_t>(rank)]; }

  // Says of the running rank's next wait what its call says; without a limit, its group's counts. Since when is not
  // known yet.
  void limit_next(const Deadline& deadline);
  // What a call says of its wait is forgotten where there was none.
  void forget_next() { next_ = {}; }
  // The rank, whose status says for what, waits from now on.
  void begin(Rank rank);

  // The rank goes on waiting, for as long as it takes.
  void lift(Rank rank) { of_[static_cast<std::size_t>(rank)].limit = 0; }

  // When the first of the waiting ranks gives up. `own`: of those whose call says when.
  std::optional<Time> first(bool own) const;
  // The rank waits, and has waited for too long.
  bool is_over(Rank rank) const;

 private:
  Run& run_;
  std::vector<Duration> group_timeouts_;  // by GroupId; 0: the run's
  std::vector<Deadline> of_;              // by global rank; empty while nothing has a limit
  Deadline next_;                         // of the wait that the running rank is about to begin
};

}  // namespace rollcall::sim
