#pragma once

// Claims: what the simulator said about a program, each with what real ranks did, and whether the two agree; or
// the same of two runs, before and after a change. What one run cannot show is said, with the reason; it is never
// counted as agreement.

#include <optional>
#include <string>
#include <vector>

#include "scenarios/compare/facts.h"
#include "sim/cost/topology.h"

namespace rollcall::compare {

struct Claim {
  enum class Judgement : std::uint8_t { agrees, differs, cannot_be_judged };

  std::string about;  // "verdict", "results"
  std::string simulated;
  std::string real;
  Judgement judgement = Judgement::agrees;
  std::string because;  // differs: where first; cannot be judged: why

  friend bool operator==(const Claim&, const Claim&) = default;
};

std::string_view to_string(Claim::Judgement judgement);

// `real` is of the same program at the same number of ranks. `written_for` is the backend that the scenario
// names, which need not be the one that ran. `cluster` is what times are predicted for.
std::vector<Claim> compare(const Facts& simulated, const Facts& real, const std::string& written_for,
                           const std::optional<cost::Cluster>& cluster = {});

// The same of two runs in one world, which need not be of one program: what has changed.
std::vector<Claim> compare_runs(const Facts& before, const Facts& after);

// How the two sides are called.
struct Sides {
  std::string first = "simulated";
  std::string second = "real";
};

bool any_differs(const std::vector<Claim>& claims);

// A table, one claim a row; reasons below. Complete lines.
std::string text_of(const std::vector<Claim>& claims, const Facts& real, const Sides& sides = {});
// { "schema_version": 1, "scenario", "backend", "ranks", "claims": [ { "about", "simulated", "real",
// "judgement", "because" } ] }, where "simulated" and "real" are the sides' names
std::string json_of(const std::vector<Claim>& claims, const Facts& real, const Sides& sides = {});

}  // namespace rollcall::compare
