#pragma once

// The properties of a failure that must stay the same while a scenario shrinks.

#include <string>

#include "sim/report/report.h"

namespace rollcall::scenario {

// A failure without its numbers: the ranks, their number, and the call may change; what went wrong may not.
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

}  // namespace rollcall::scenario
