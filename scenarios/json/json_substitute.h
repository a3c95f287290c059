#pragma once

// Replaces values of some members of a document's root, which is how one case of a matrix is read.

#include <string_view>
#include <vector>

#include "scenarios/json/json_tree.h"

namespace rollcall::scenario {

struct JsonMember {
  std::string_view key;
  Json value;
};

// Returns `tree` with these members: in place of those with the same key, or after all others. Values keep their
// positions in the text. The result refers to the texts of `tree`, which must outlive it; the root is an object.
JsonTree substitute(const JsonTree& tree, const std::vector<JsonMember>& members);

}  // namespace rollcall::scenario
