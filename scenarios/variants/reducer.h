#pragma once

// Delta debugging on a JSON tree (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002;
// Misherghi and Su, "HDD: hierarchical delta debugging", 2006). It knows nothing about scenarios except what their
// blocks look like: `accepts` refuses candidates that are no longer scenarios.

#include <cstddef>
#include <functional>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/import/scenario_writer.h"

namespace rollcall::scenario {

// Returns true if the candidate still fails as it should. Called for every candidate; returns false when no more are
// wanted.
using Accepts = std::function<bool(const OrderedJson& candidate)>;

// Each of these makes one pass over `tree` and leaves it as small as was accepted. Returns true if something was
// removed.
bool shorten_lists(OrderedJson& tree, const Accepts& accepts);   // removes list elements, many at first
bool unwrap_blocks(OrderedJson& tree, const Accepts& accepts);   // replaces a statement by those in it
bool drop_members(OrderedJson& tree, const Accepts& accepts);    // removes members of objects
bool shrink_numbers(OrderedJson& tree, const Accepts& accepts);  // reduces integers toward 0 and 1

// Replaces `tree` with the candidate if it is accepted.
bool offer(OrderedJson& tree, OrderedJson candidate, const Accepts& accepts);

// The number of statements in a tree.
std::size_t count_statements(const OrderedJson& scenario);

}  // namespace rollcall::scenario
