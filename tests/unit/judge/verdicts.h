#pragma once

// Short functions that query a verdict.

#include <string>
#include <variant>

#include "sim/report/verdict.h"
#include "tests/catch.h"

namespace rollcall::check::test {

inline const Finding& finding(const Verdict& verdict) {
  REQUIRE(finding_of(verdict) != nullptr);
  return *finding_of(verdict);
}

inline std::string culprits(const Verdict& verdict) { return to_string(finding(verdict).culprits); }
inline FindingKind kind(const Verdict& verdict) { return finding(verdict).kind; }

template <typename T>
const T& as(const Verdict& verdict) {
  REQUIRE(std::holds_alternative<T>(verdict));
  return std::get<T>(verdict);
}

}  // namespace rollcall::check::test
