// The part of HeaderReader about "faults": slow ranks, jitter, and ranks that die.

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

#include "scenarios/format/header_reader.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/program/rank_sets.h"
#include "scenarios/program/units.h"

namespace rollcall::scenario {
namespace {

// The key that gives the amount of each kind of fault.
struct FaultKind {
  std::string_view name;
  std::string_view key;
  std::string_view phrase;
};
constexpr std::array<FaultKind, 3> kinds = {{{"slow", "factor", "a slow rank needs a \"factor\""},
                                             {"jitter", "fraction", "jitter needs a \"fraction\""},
                                             {"crash", "at", "a crash needs a time, \"at\""}}};

sim::Millionths millionths(const Json& amount) {
  return std::llround(amount.real() * static_cast<double>(sim::one_whole));
}

}  // namespace

void HeaderReader::read_faults() {
  if (const auto faults = root_.find("faults")) {
    for (Json fault : faults->children()) {
      read_fault(fault);
    }
  }
}

void HeaderReader::read_fault(const Json& fault) {
  sim::Options& options = scenario_.options;
  const auto given = fault.find("ranks");
  const auto ranks = given ? read_ranks(*given, options.world_size, diagnostics_)
                           : std::optional(RankSet::range(0, options.world_size - 1));
  const FaultKind& kind = *std::ranges::find(kinds, fault.find("kind")->text(), &FaultKind::name);
  for (const FaultKind& other : kinds) {
    const auto stray = other.key == kind.key ? std::nullopt : fault.find(other.key);
    if (stray) {
      diagnostics_.error_at_key(*stray, std::string(kind.phrase));
    }
  }
  const auto amount = fault.find(kind.key);
  if (!amount) {
    error(fault, fmt::format("\"{}\" is missing", kind.key));
  } else if (ranks && kind.name == "slow") {
    options.slow.push_back({*ranks, millionths(*amount)});
  } else if (ranks && kind.name == "jitter") {
    options.jitter.push_back({*ranks, millionths(*amount)});
  } else if (ranks) {
    if (const auto at = diagnostics_.value_of(*amount, parse_duration(amount->text()))) {
      options.crashes.push_back({*ranks, *at});
    }
  }
}

}  // namespace rollcall::scenario
