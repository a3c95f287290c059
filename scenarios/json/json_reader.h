#pragma once

// Reads JSON with // and /* */ comments into a JsonTree.

#include "scenarios/json/json_tree.h"

namespace rollcall::scenario {

class SourceText;

// More levels of brackets are refused: no scenario needs them, and all code that walks a tree may
// rely on the bound.
inline constexpr std::size_t json_depth_max = 200;

// The tree refers to the text of `source`, which must outlive it. Throws InvalidScenario if the
// text is not JSON, is nested too deeply, or has an object with a duplicate key.
JsonTree read_json(const SourceText& source);

}  // namespace rollcall::scenario
