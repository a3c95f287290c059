#pragma once

// Healthy training loops: the calls of one step of every rank, piece by piece.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/c10d/op.h"
#include "tests/conformance/random.h"

namespace rollcall::blame {

using Json = nlohmann::ordered_json;
using conformance::Random;

// One call of a step. Inside a loop, the call is made once for every microbatch.
struct Piece {
  std::vector<Json> calls;  // {"all_reduce": {...}}, and statements that belong to it
  std::string group{};      // of a collective; empty: a message
  std::string condition{};  // which ranks make it; empty: all
  std::function<bool(Rank)> runs_on = [](Rank) { return true; };
  std::string loop{};  // name of the variable that counts microbatches; empty: once a step

  bool is_message() const { return group.empty(); }
  bool is_one_call() const { return calls.size() == 1; }
};

// Consecutive pieces, in a loop or not.
struct Section {
  std::string count = "1";  // how often: an expression
  std::string loop{};       // the variable; empty: once
  std::vector<Piece> pieces{};
};

struct Layout {
  std::string name;
  Rank world_size = 0;
  std::vector<std::string> dims{};  // of the mesh; empty: only the world
  std::vector<Rank> shape{};
  std::vector<Json> objects{};  // of the scenario: one, or none
  std::vector<Json> before{};   // statements before the steps
  std::vector<Section> step{};
  Rank steps = 0;

  Rank coordinate(Rank rank, const std::string& dim) const;
  // Returns the group of `rank` in a dimension, or the world.
  std::vector<Rank> members(const std::string& group, Rank rank) const;
};

const std::vector<std::string>& layout_names();
Layout draw_layout(const std::string& name, Random& random);

}  // namespace rollcall::blame
