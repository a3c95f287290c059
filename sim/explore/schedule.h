#pragma once

// Schedule: where a run took another than the usual way, and nothing else. As text it is short enough to be pasted:
// a version, numbers of variable length and a check sum, in base 32 (a-z, 2-7).

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
  Rank rank = 0;  // who decided; of an order, whose call went ahead
  std::size_t ways = 2;
  std::size_t way = 1;

  friend bool operator==(const Deviation&, const Deviation&) = default;
};

struct Schedule {
  bool orders_calls = false;  // as Decisions says
  bool draws_delays = false;
  std::vector<Rank> receivers{};        // who is watched, as Decisions says; ascending
  std::size_t decisions = 0;            // of the run, with more than one way
  std::vector<Deviation> deviations{};  // ascending by index

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

std::string to_text(const Schedule& schedule);

// Text that is not a schedule, or one of a later version; what() says so.
struct BadSchedule : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Schedule parse_schedule(std::string_view text);

}  // namespace rollcall::sim
