#pragma once

// Claims: what the simulator said about a program, each with what real ranks did, and whether the two agree; or
// the same for two runs, before and after a change. What a run cannot show is listed with the reason; it never
// counts as agreement.

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
  std::string because;   // differs: the first place; cannot be judged: the reason
  bool is_lack = false;  // cannot be judged, because the real ranks cannot do what the program asks for

  friend bool operator==(const Claim&, const Claim&) = default;
};

std::string_view to_string(Claim::Judgement judgement);

// `real` is from the same program with the same number of ranks. `written_for` is the backend that the scenario
// names, which may differ from the one that ran. `cluster` is the one that times are predicted for.
std::vector<Claim> compare(const Facts& simulated, const Facts& real, const std::string& written_for,
                           const std::optional<cost::Cluster>& cluster = {});

// The same for two runs in one world, which may be of different programs: says what has changed.
std::vector<Claim> compare_runs(const Facts& before, const Facts& after);

// The names of the two sides.
struct Sides {
  std::string first = "simulated";
  std::string second = "real";
};

bool any_differs(const std::vector<Claim>& claims);

// A table with one claim per row; reasons below. Complete lines.
std::string text_of(const std::vector<Claim>& claims, const Facts& real, const Sides& sides = {});
// { "schema_version": 1, "scenario", "backend", "ranks", "claims": [ { "about", "simulated", "real",
// "judgement", "because" } ] }, where "simulated" and "real" are the sides' names.
std::string json_of(const std::vector<Claim>& claims, const Facts& real, const Sides& sides = {});

}  // namespace rollcall::compare
