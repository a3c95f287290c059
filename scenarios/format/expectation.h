#pragma once

// Expectation: the outcome that a scenario expects of its run, and whether a report agrees.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/time.h"
#include "sim/report/rank_set.h"
#include "sim/report/verdict.h"

namespace rollcall {
struct Report;
}

namespace rollcall::scenario {

struct Expectation {
  // The place where a run failed. Members that are absent may have any value.
  struct At {
    std::optional<std::string> op;
    std::optional<std::string> group;
    std::optional<std::int64_t> seq;
    std::optional<RankSet> waiting;
    std::optional<RankSet> missing;
    friend bool operator==(const At&, const At&) = default;
  };
  // The lines that each of `ranks` prints.
  struct Prints {
    RankSet ranks;
    std::vector<std::string> lines;
    friend bool operator==(const Prints&, const Prints&) = default;
  };

  // The value of a tensor on each of `ranks` when the rank's program has ended.
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
  // Bounds that a change must not exceed.
  struct AtMost {
    std::optional<Duration> simulated_time;
    std::optional<std::int64_t> shadow_collectives;  // issued by all ranks that have joined
    std::optional<Duration> idle_time;               // total time that ranks wait for others in calls
    friend bool operator==(const AtMost&, const AtMost&) = default;
  };

  std::string verdict = "ok";
  std::optional<FindingKind> kind;  // or the word for the same fault in recordings
  std::optional<RankSet> culprits;
  std::optional<At> at;
  std::optional<std::vector<std::string>> output;  // of all ranks together, rank by rank
  std::vector<Prints> prints;
  std::vector<Values> values;
  std::vector<Count> counts;
  AtMost at_most;
  std::string golden;  // a file with the calls that every rank makes; may be empty

  // True if judging needs a report with a timeline.
  bool needs_timeline() const;
  friend bool operator==(const Expectation&, const Expectation&) = default;
};

// The expectations that `report` does not meet, one sentence each; except `golden`, which needs its file. Times and
// values
// are not checked in a report of real ranks: its times are a clock's, and its tensors are in other processes.
std::vector<std::string> unmet(const Expectation& expectation, const Report& report);

}  // namespace rollcall::scenario
