#pragma once

// Expectation: the outcome that a scenario expects of its run, and whether a report agrees.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/time.h"
#include "sim/report/rank_set.h"
#include "sim/report/verdict.h"

namespace rollcall {
struct Report;
}

namespace rollcall::scenario {

struct Expectation {
  // Where a run came apart. What is absent may be anything.
  struct At {
    std::optional<std::string> op;
    std::optional<std::string> group;
    std::optional<std::int64_t> seq;
    std::optional<RankSet> waiting;
    std::optional<RankSet> missing;
    friend bool operator==(const At&, const At&) = default;
  };
  // What each of `ranks` prints.
  struct Prints {
    RankSet ranks;
    std::vector<std::string> lines;
    friend bool operator==(const Prints&, const Prints&) = default;
  };

  // What a tensor of each of `ranks` holds when the rank's program has ended.
  struct Values {
    RankSet ranks;
    std::string tensor;
    std::vector<double> elements;  // one: every element has this value
    friend bool operator==(const Values&, const Values&) = default;
  };
  // How often an operation is called: by each of `ranks`, or by all ranks together.
  struct Count {
    std::optional<RankSet> ranks;
    std::string op;
    std::int64_t calls = 0;
    friend bool operator==(const Count&, const Count&) = default;
  };
  // What a change must not make worse.
  struct AtMost {
    std::optional<Duration> simulated_time;
    std::optional<std::int64_t> shadow_collectives;  // issued by all ranks that have joined
    std::optional<Duration> idle_time;               // that all ranks together wait for others in calls
    friend bool operator==(const AtMost&, const AtMost&) = default;
  };

  std::string verdict = "ok";
  std::optional<FindingKind> kind;  // or the same fault in the words of recordings
  std::optional<RankSet> culprits;
  std::optional<At> at;
  std::optional<std::vector<std::string>> output;  // of all ranks together, rank by rank
  std::vector<Prints> prints;
  std::vector<Values> values;
  std::vector<Count> counts;
  AtMost at_most;
  std::string golden;  // a file with the calls that every rank makes; may be empty

  // Can only a report with a timeline be judged?
  bool needs_timeline() const;
  friend bool operator==(const Expectation&, const Expectation&) = default;
};

// The expectations that `report` does not meet, one sentence each; `golden` aside, which needs its file. A report of
// real ranks is not held to times and values: it has a clock's times, and its tensors are other processes'.
std::vector<std::string> unmet(const Expectation& expectation, const Report& report);

}  // namespace rollcall::scenario
