#pragma once

// Scenarios generated from a seed, over the whole language: collectives of every kind, messages, groups, the store,
// joinables and models, loops and branches, faults and limits; and now and then a rank that deviates from the others.
// All of them can be loaded; how they end is unknown.

#include <cstdint>
#include <string>

namespace rollcall::conformance {

struct GeneratedScenario {
  std::string text;
  bool leaves_to_chance = false;  // jitter: a different seed gives a different run
  bool runs_on_gloo =
      false;  // real ranks have to do the same: no faults, no limits, nothing decided by timing
};

GeneratedScenario generated_scenario(std::uint64_t seed);

}  // namespace rollcall::conformance
