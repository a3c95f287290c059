#pragma once

// A document with other values for some members of its root: how one case of a matrix is read.

#include <string_view>
#include <vector>

#include "scenarios/json/json_tree.h"

namespace rollcall::scenario {

struct JsonMember {
  std::string_view key;
  Json value;
};

// `tree` with these members: in the place of those of the same key, or after all others. Values keep their
// positions in the text. The result refers to the texts of `tree`, which must outlive it; the root is an object.
JsonTree substitute(const JsonTree& tree, const std::vector<JsonMember>& members);

}  // namespace rollcall::scenario
