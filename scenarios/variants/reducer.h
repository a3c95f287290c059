#pragma once

// Delta debugging on a JSON tree (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002;
// Misherghi and Su, "HDD: hierarchical delta debugging", 2006). It knows nothing of scenarios but what their blocks
// look like: what is not a scenario any more is refused by whoever is asked.

#include <cstddef>
#include <functional>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/import/scenario_writer.h"

namespace rollcall::scenario {

// Is this still what it should be? Asked for every candidate; false when no more are wanted.
using Accepts = std::function<bool(const OrderedJson& candidate)>;

// Each of these makes one pass over `tree` and leaves it as small as was accepted. True when something was taken away.
bool shorten_lists(OrderedJson& tree, const Accepts& accepts);   // elements of lists, many at a time at first
bool unwrap_blocks(OrderedJson& tree, const Accepts& accepts);   // a statement by the statements in it
bool drop_members(OrderedJson& tree, const Accepts& accepts);    // of objects
bool shrink_numbers(OrderedJson& tree, const Accepts& accepts);  // whole ones, towards 0 and 1

// Takes the candidate if it is accepted.
bool offer(OrderedJson& tree, OrderedJson candidate, const Accepts& accepts);

// How many statements there are in a tree.
std::size_t count_statements(const OrderedJson& scenario);

}  // namespace rollcall::scenario
