#pragma once

// Does the job stand still? It does when somebody waits and nothing has moved on any rank for longer than the job's own
// pauses were. A rank that is in no call but works (a checkpoint, a validation) is given more time; a process that
// cannot move at all is given little. Pure: times and looks come from outside.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "sim/base/time.h"
#include "sim/c10d/op.h"

namespace rollcall::watch {

// A rank at one moment.
struct RankMoment {
  // What its process does, apart from calls.
  enum class Activity : std::uint8_t {
    quiet,
    works,    // it reads or writes, or computes here and there
    spins,    // it computes, and every look finds it at the same lines
    held,     // its interpreter answers nothing
    stopped,  // by a signal
    gone,     // the process has ended
  };

  Rank rank = 0;
  std::uint64_t moves = 0;   // changes when the rank makes a call, or a call of its ends
  bool waits = false;        // a call of its is not over
  bool is_starting = false;  // it waits for others to come to the job's beginning
  Activity activity = Activity::quiet;
};

struct StallOptions {
  std::optional<Duration> after;         // what the user says; none: by the job's own pauses
  Duration least = 4 * second;           // of the latter
  std::int64_t pauses = 3;               // times the longest
  std::int64_t patience_with_work = 15;  // times as long
  std::int64_t patience_at_start = 6;
};

class Stall {
 public:
  enum class State : std::uint8_t { moves, silent, stands_still };

  explicit Stall(const StallOptions& options) : options_(options) {}

  // Times never go back. Ranks may be added from one look to the next.
  State look(Time now, const std::vector<RankMoment>& ranks);

  Duration silence(Time now) const { return now - last_move_; }
  // The longest silence that the job has come out of by itself.
  Duration longest_pause() const { return longest_pause_; }
  // How long a silence like the present one is put up with.
  Duration patience(const std::vector<RankMoment>& ranks) const;
  // Of the standstill that the last look ended; 0: it did not end one.
  Duration ended_after() const { return ended_after_; }

 private:
  StallOptions options_;
  std::map<Rank, std::uint64_t> moves_;
  Time last_move_ = 0;
  Duration longest_pause_ = 0;
  Duration ended_after_ = 0;
  State state_ = State::moves;
  bool has_begun_ = false;
};

}  // namespace rollcall::watch
