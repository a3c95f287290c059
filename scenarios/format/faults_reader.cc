#include "scenarios/format/faults_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include <fmt/core.h>

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

class FaultReader {
 public:
  FaultReader(const Json& fault, sim::Options& options, Diagnostics& diagnostics)
      : fault_(fault), options_(options), diagnostics_(diagnostics) {}

  void read() {
    const auto given = fault_.find("ranks");
    const auto ranks = given ? read_ranks(*given, options_.world_size, diagnostics_)
                             : std::optional(RankSet::range(0, options_.world_size - 1));
    const FaultKind& kind = *std::ranges::find(kinds, fault_.find("kind")->text(), &FaultKind::name);
    refuse_keys_of_others(kind);
    const auto amount = fault_.find(kind.key);
    if (!amount) {
      diagnostics_.error(fault_, fmt::format("\"{}\" is missing", kind.key));
    } else if (ranks) {
      add(kind.name, *ranks, *amount);
    }
  }

 private:
  void refuse_keys_of_others(const FaultKind& kind) {
    for (const FaultKind& other : kinds) {
      const auto stray = other.key == kind.key ? std::nullopt : fault_.find(other.key);
      if (stray) {
        diagnostics_.error_at_key(*stray, std::string(kind.phrase));
      }
    }
  }

  void add(std::string_view kind, const RankSet& ranks, const Json& amount) {
    if (kind == "slow") {
      options_.slow.push_back({ranks, millionths(amount)});
    } else if (kind == "jitter") {
      options_.jitter.push_back({ranks, millionths(amount)});
    } else if (const auto at = diagnostics_.value_of(amount, parse_duration(amount.text()))) {
      options_.crashes.push_back({ranks, *at});
    }
  }

  static sim::Millionths millionths(const Json& amount) {
    return std::llround(amount.real() * static_cast<double>(sim::one_whole));
  }

  Json fault_;
  sim::Options& options_;
  Diagnostics& diagnostics_;
};

}  // namespace

void read_faults(const Json& faults, sim::Options& options, Diagnostics& diagnostics) {
  for (Json fault : faults.children()) {
    FaultReader(fault, options, diagnostics).read();
  }
}

}  // namespace rollcall::scenario
