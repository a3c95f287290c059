#pragma once

// Which nodes of a directed graph can all reach each other.

#include <cstddef>
#include <vector>

namespace rollcall::check {

// `next` holds, for each node, the nodes it has edges to. Every node is in exactly one component. Nodes ascend within
// a component, and components by their first node.
std::vector<std::vector<std::size_t>> strong_components(const std::vector<std::vector<std::size_t>>& next);

}  // namespace rollcall::check
