#pragma once

// Placement: how a DTensor is distributed along one dimension of a mesh (torch/distributed/tensor/placement_types.py).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/tensor/dtype.h"

namespace rollcall {

struct Placement {
  enum class Kind : std::uint8_t { replicate, shard, partial };

  Kind kind = Kind::replicate;
  int dim = 0;                      // shard: of the tensor; negative ones count from the last
  ReduceOp reduce = ReduceOp::sum;  // partial

  bool is_replicate() const { return kind == Kind::replicate; }
  bool is_shard() const { return kind == Kind::shard; }
  bool is_shard(int of_dim) const { return is_shard() && dim == of_dim; }
  bool is_partial() const { return kind == Kind::partial; }

  friend bool operator==(const Placement&, const Placement&) = default;
};

inline Placement Replicate() { return {}; }
inline Placement Shard(int dim) { return {.kind = Placement::Kind::shard, .dim = dim}; }
inline Placement Partial(ReduceOp reduce = ReduceOp::sum) {
  return {.kind = Placement::Kind::partial, .reduce = reduce};
}

// One per dimension of the mesh.
using Placements = std::vector<Placement>;

// "S(0)", "R", "P(sum)": as torch prints them.
std::string to_string(const Placement& placement);
// Reads these, and what programs write: "Shard(0)", "Replicate()", "Partial()". Empty for other texts.
std::optional<Placement> parse_placement(std::string_view text);
// The placement with its dimension counted from the first, for tensors of `dims` dimensions.
Placement normalized(Placement placement, std::size_t dims);

}  // namespace rollcall
