#pragma once

// What one rank of a script did, as statements of a scenario.

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/import/scenario_writer.h"
#include "traces/formats/script_record.h"

namespace rollcall::scenario {

// What is to be said of the calls of one rank beyond what the rank itself recorded; by number of the call.
struct CallNotes {
  std::map<std::uint32_t, std::string> labels{};  // what other ranks' calls are compared with
  std::map<std::uint32_t, std::int64_t> numel{};  // instead of the recorded one
  std::map<std::uint32_t, std::string> peers{};   // an expression, instead of the recorded peer
  bool has_sites = true;
};

// The rank's calls in order. Calls that torch waits for are blocking; handles are named as few names as there are
// calls under way, so that iterations look alike; one that nobody waits for has no name. The last statement says how
// the rank ended, if that was not the end of the script.
std::vector<OrderedJson> script_statements(const traces::ScriptRank& rank, const CallNotes& notes);

// "1500ms"
std::string duration_text(double seconds);

// Elements of what the statement's `numel` speaks of: of each tensor where it takes one per rank.
std::int64_t numel_of(const traces::ScriptCall& call);

// Has a list of the call another length than one tensor per member? Backends refuse that, and no statement can say it.
bool has_odd_list(const traces::ScriptRank& rank, const traces::ScriptCall& call);
// Is it such a call that was refused, or the wait for one? Its exception stands in its place.
bool is_left_out(const traces::ScriptRank& rank, const traces::ScriptEvent& event);

}  // namespace rollcall::scenario
