#pragma once

// What if? Disturbs a scenario, one at a time, in all the ways that happen to jobs: does it
// survive?

#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/report.h"

namespace rollcall::scenario {

struct WhatIfOptions {
  std::optional<std::uint64_t> seed{};  // instead of the scenario's
  bool crash_each = false;              // also let a rank die, at every time at which one of its calls begins
  std::function<void(std::size_t done, std::size_t all)> progress{};
  const volatile std::sig_atomic_t* interrupted = nullptr;  // borrowed
};

// One disturbance and its outcome.
struct Survival {
  std::string what;   // "inputs - 1", "skips an input", "exits early", "10 times slower", "dies"
  std::string where;  // "rank 3"; "rank 3 at 20 us"
  std::string verdict;
  FindingKind kind = FindingKind::ok;
  std::string headline;  // empty for ok
};

struct WhatIf {
  Report undisturbed;
  std::vector<Survival> survivals;  // by disturbance, then by rank
  bool interrupted = false;
};

// `address` is FILE or FILE::case. Throws InvalidScenario.
WhatIf what_if(const std::string& address, const WhatIfOptions& options);

}  // namespace rollcall::scenario
