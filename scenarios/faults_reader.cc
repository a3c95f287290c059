#include "scenarios/faults_reader.h"

#include <cmath>
#include <string>

#include "scenarios/json/diagnostic.h"
#include "scenarios/program/rank_sets.h"

namespace rollcall::scenario {
namespace {

// The number called `key` in millionths; nothing, and an error, when it is missing.
std::optional<sim::Millionths> millionths(const Json& fault, std::string_view key, Diagnostics& diagnostics) {
  const auto value = fault.find(key);
  if (!value) {
    diagnostics.error(fault.offset(), fault.pointer(), "\"" + std::string(key) + "\" is missing");
    return std::nullopt;
  }
  return std::llround(value->real() * static_cast<double>(sim::one_whole));
}

void read_fault(const Json& fault, sim::Options& options, Diagnostics& diagnostics) {
  const auto given = fault.find("ranks");
  const auto ranks = given ? read_ranks(*given, options.world_size, diagnostics)
                           : std::optional(RankSet::range(0, options.world_size - 1));
  const bool is_slow = fault.find("kind")->text() == "slow";
  const auto amount = millionths(fault, is_slow ? "factor" : "fraction", diagnostics);
  const auto stray = fault.find(is_slow ? "fraction" : "factor");
  if (stray) {
    diagnostics.error(stray->key_offset(), stray->pointer(),
                      is_slow ? "a slow rank has a \"factor\"" : "jitter has a \"fraction\"");
  }
  if (!ranks || !amount) {
    return;
  }
  if (is_slow) {
    options.slow.push_back({*ranks, *amount});
  } else {
    options.jitter.push_back({*ranks, *amount});
  }
}

}  // namespace

void read_faults(const Json& faults, sim::Options& options, Diagnostics& diagnostics) {
  for (Json fault : faults.children()) {
    read_fault(fault, options, diagnostics);
  }
}

}  // namespace rollcall::scenario
