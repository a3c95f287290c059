#pragma once

// Deadlines: how long ranks wait. A rank gives up after the limit of its call, its group or the run. Only a limit
// that the call itself names can end a wait before it is proven that nothing else can: a program that passes one
// is prepared for the timeout.

#include <optional>
#include <vector>

#include "sim/engine/run.h"

namespace rollcall::sim {

// How long a rank's wait may take.
struct Deadline {
  Time since = 0;
  Duration limit = 0;      // 0: none
  bool own = false;        // the program's call named it, so its expiry is an event like any other
  bool names_all = false;  // monitored_barrier's wait_all_ranks
  bool of_wait = false;    // work.wait's: the call itself continues
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

  // Sets the limit that the running rank's call names for its next wait; without one, its group's counts. The start is
  // not known yet.
  void limit_next(const Deadline& deadline);
  // Drops a limit that a call named if it did not wait.
  void forget_next() { next_ = {}; }
  // The rank waits from now on; its status says for what.
  void begin(Rank rank);

  // The rank continues to wait, without a limit.
  void lift(Rank rank) { of_[static_cast<std::size_t>(rank)].limit = 0; }

  // When the first of the waiting ranks gives up. `own`: only of ranks whose call names the limit.
  std::optional<Time> first(bool own) const;
  // True if the rank waits and its limit is over.
  bool is_over(Rank rank) const;

 private:
  Run& run_;
  std::vector<Duration> group_timeouts_;  // by GroupId; 0: the run's
  std::vector<Deadline> of_;              // by global rank; empty while nothing has a limit
  Deadline next_;                         // of the wait that the running rank is about to begin
};

}  // namespace rollcall::sim
