#pragma once

// Finds the smallest scenario that still fails in the same way.

#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include "sim/c10d/op.h"
#include "sim/report/report.h"

namespace rollcall::scenario {

// The properties of a failure that must stay the same while a scenario shrinks: the ranks, their number, and the call
// may change; what went wrong may not.
struct Signature {
  std::string verdict;  // "ok", "deadlock", ...
  FindingKind kind = FindingKind::ok;
  std::string op;    // the call where it failed; may be empty
  std::string role;  // the final state of the culprits: "finished", "waiting in all_reduce, raised"

  friend bool operator==(const Signature&, const Signature&) = default;
};

Signature signature_of(const Report& report);

// "deadlock (missing_participant) in all_reduce; culprit: finished"
std::string to_string(const Signature& signature);

struct MinimizeOptions {
  std::optional<std::uint64_t> seed{};  // instead of the scenario's
  // Called after every candidate with the current size; may be empty.
  std::function<void(std::int64_t tried, Rank ranks, std::size_t statements)> progress{};
  const volatile std::sig_atomic_t* interrupted = nullptr;  // ends the search with the best so far; borrowed
};

struct ScenarioSize {
  Rank ranks = 0;
  std::size_t statements = 0;
};

struct Minimized {
  std::string text;  // of the new scenario, with a comment and an `origin`
  Signature signature;
  ScenarioSize before;
  ScenarioSize after;
  std::int64_t tried = 0;
  bool interrupted = false;
};

// Thrown if there is no failure to preserve.
struct NothingToMinimize : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// `address` is FILE or FILE::case. The failure is that of the usual run, or the first that other schedules have.
// Deterministic, unless interrupted. Throws InvalidScenario, NothingToMinimize.
Minimized minimize(const std::string& address, const MinimizeOptions& options);

}  // namespace rollcall::scenario
