#pragma once

// Converts the record of one rank of a script to statements of a scenario.

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/import/scenario_writer.h"
#include "traces/formats/script_record.h"

namespace rollcall::scenario {

// What is known about the calls of one rank beyond its own record; by number of the call.
struct CallNotes {
  std::map<std::uint32_t, std::string> labels{};  // compared with those of other ranks' calls
  std::map<std::uint32_t, std::int64_t> numel{};  // instead of the recorded one
  std::map<std::uint32_t, std::string> peers{};   // an expression, instead of the recorded peer
};

// The rank's calls in order. Calls that torch waits for are blocking; handles use as few names as there are calls in
// progress, so that iterations look alike; one that is never waited for has no name. The last statement says how the
// rank ended, unless it reached the end of the script.
std::vector<OrderedJson> script_statements(const traces::ScriptRank& rank, const CallNotes& notes);

// "1500ms"
std::string duration_text(double seconds);

// The elements that the statement's `numel` counts: those of each tensor if it takes one per rank.
std::int64_t numel_of(const traces::ScriptCall& call);

// True if a list of the call does not have one tensor per member. Backends refuse that, and no statement can express
// it.
bool has_odd_list(const traces::ScriptRank& rank, const traces::ScriptCall& call);
// True if it is such a call that was refused, or the wait for one. Its exception takes its place.
bool is_left_out(const traces::ScriptRank& rank, const traces::ScriptEvent& event);

}  // namespace rollcall::scenario
