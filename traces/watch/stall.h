#pragma once

// Decides whether the job has stalled. It has if a rank waits and nothing has moved on any rank for longer than the
// job's own pauses were. A rank that is in no call but works (a checkpoint, a validation) is given more time; a
// process that cannot move at all is given little. Pure: times and looks come from outside.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "sim/base/time.h"
#include "sim/c10d/op.h"

namespace rollcall::watch {

// A rank at one moment.
struct RankMoment {
  // What its process does outside of calls.
  enum class Activity : std::uint8_t {
    quiet,
    works,    // it reads or writes, or computes at changing lines
    spins,    // it computes, and every look finds it at the same lines
    held,     // its interpreter does not answer
    stopped,  // by a signal
    gone,     // the process has ended
  };

  Rank rank = 0;
  std::uint64_t moves = 0;   // changes when the rank makes a call, or when one of its calls ends
  bool waits = false;        // one of its calls has not ended
  bool is_starting = false;  // it waits for other ranks at the start of the job
  Activity activity = Activity::quiet;
};

struct StallOptions {
  std::optional<Duration> after;         // the user's limit; empty: derived from the job's own pauses
  Duration least = 4 * second;           // at least this, if derived
  std::int64_t pauses = 3;               // times the longest pause
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
  // How long a silence like the present one is tolerated.
  Duration patience(const std::vector<RankMoment>& ranks) const;
  // The length of the last standstill that has ended; 0: none has.
  Duration ended_after() const { return ended_after_; }

 private:
  StallOptions options_;
  std::map<Rank, std::uint64_t> moves_;
  std::map<Rank, Time> gone_since_;
  Time last_move_ = 0;
  Duration longest_pause_ = 0;  // that the job has recovered from on its own
  Duration ended_after_ = 0;
  State state_ = State::moves;
  bool has_begun_ = false;
};

}  // namespace rollcall::watch
