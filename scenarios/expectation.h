#pragma once

// Expectation: what a scenario says its run comes to, and whether a report agrees.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

  std::string verdict = "ok";
  std::optional<std::string> kind;
  std::optional<RankSet> culprits;
  std::optional<At> at;
  std::optional<std::vector<std::string>> output;  // of all ranks together, rank by rank
  std::vector<Prints> prints;

  friend bool operator==(const Expectation&, const Expectation&) = default;
};

// True when the culprits are the sides of a tie or of a circle: nothing says which of them is wrong.
bool is_undecided(const Verdict& verdict);

// The expectations that `report` does not meet, one sentence each.
std::vector<std::string> unmet(const Expectation& expectation, const Report& report);

}  // namespace rollcall::scenario
