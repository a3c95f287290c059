#pragma once

// Schedule: where a run left the usual way, and nothing else. Its text is short enough to be pasted: a version, numbers
// of variable length and a checksum, in base 32 (a-z, 2-7).

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sim/engine/decisions.h"

namespace rollcall::sim {

// A decision that did not go the usual way.
struct Deviation {
  std::size_t index = 0;  // among the run's decisions that had more than one way
  Decision::Kind kind = Decision::Kind::branch;
  Rank rank = 0;  // the rank with the choice; of an order, the rank whose call went ahead
  std::size_t ways = 2;
  std::size_t way = 1;

  friend bool operator==(const Deviation&, const Deviation&) = default;
};

struct Schedule {
  bool orders_calls = false;  // as in Decisions
  bool draws_delays = false;
  std::vector<Rank> receivers{};        // those that Decisions watches; ascending
  std::size_t decisions = 0;            // of the run, with more than one way
  std::vector<Deviation> deviations{};  // ascending by index

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

std::string to_text(const Schedule& schedule);

// Thrown for text that is not a schedule, or one of a later version; what() says which.
struct BadSchedule : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Schedule parse_schedule(std::string_view text);

}  // namespace rollcall::sim
