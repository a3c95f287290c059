#pragma once

// Reads JSON with // and /* */ comments into a JsonTree.

#include "scenarios/json/json_tree.h"

namespace rollcall::scenario {

class SourceText;

// More levels of brackets are refused: no scenario needs them, and everything that walks a tree may
// rely on the bound.
inline constexpr std::size_t json_depth_max = 200;

// The tree refers to the text of `source`, which must outlive it. Throws InvalidScenario when the
// text is not JSON, when it nests too deep, or when an object has a key twice.
JsonTree read_json(const SourceText& source);

}  // namespace rollcall::scenario
