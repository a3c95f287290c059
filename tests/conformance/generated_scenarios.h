#pragma once

// Scenarios made up from a seed, over the whole language: collectives of every kind, messages, groups, the store,
// joinables and models, loops and branches, faults and limits; and now and then a rank that does something else than
// the others. All of them can be loaded; what they come to is anybody's guess.

#include <cstdint>
#include <string>

namespace rollcall::conformance {

struct GeneratedScenario {
  std::string text;
  bool leaves_to_chance = false;  // jitter: another seed is another run
  bool runs_on_gloo =
      false;  // real ranks are to do the same: no faults, no limits, nothing decided by timing
};

GeneratedScenario generated_scenario(std::uint64_t seed);

}  // namespace rollcall::conformance
