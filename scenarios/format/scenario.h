#pragma once

// Scenario: a scenario file, read and found to be valid. All errors in a file are reported at
// once, with positions; a Scenario that exists can be run.
//
// The path from text to a run: source (text) -> json_reader (tree with positions) -> schema_check
// (published schema) -> scenario (meaning of the header) -> lowering (statements) -> interpreter.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/format/expectation.h"
#include "scenarios/program/program.h"
#include "sim/c10d/device_mesh.h"
#include "sim/engine/simulate.h"
#include "sim/engine/start_order.h"

namespace rollcall::scenario {

// How many inputs each rank has.
struct Inputs {
  std::vector<std::int64_t> list;  // by rank; empty: base + per_rank * rank
  std::int64_t base = 0;
  std::int64_t per_rank = 0;

  std::int64_t of(Rank rank) const;
};

// A name that the mesh gives to one group of every rank.
struct MeshDim {
  std::string name;
  MeshShape::Dims of;
};

struct Scenario {
  std::string file;        // as the user gave it, without the case
  std::string name;        // with its case: "uneven inputs[world_size=4]"
  std::string parameters;  // of the case: "world_size=4"; empty if the file has no matrix
  std::string source;      // where the scenario comes from; may be empty
  std::string origin;      // the tool that made it from another file; may be empty
  sim::Options options;
  Inputs inputs;
  MeshShape mesh;                  // has no dimensions if there is no mesh
  std::vector<MeshDim> mesh_dims;  // its dimensions, and those flattened from them
  bool blocking_wait = false;      // on nccl, calls block the host as well
  RankSet interrupted;             // their programs end where a recording was interrupted
  RankSet stalled;                 // their programs end where the recorded job stood still
  Expectation expect;
  std::shared_ptr<const Program> program;
  std::vector<Block> blocks;                 // the programs of ranks
  std::vector<std::uint32_t> block_of_rank;  // index into blocks, by rank; empty: all run the first

  const Block& block_of(Rank rank) const { return blocks[block_of_rank.empty() ? 0 : block_of_rank[rank]]; }
  // The rank's group along the mesh's dimension of this name; null if there is none.
  ProcessGroup mesh_group(std::string_view dim_name, Rank rank) const;
  // The name that users write: the file, and the case if it has several.
  std::string address() const { return parameters.empty() ? file : file + "::[" + parameters + "]"; }
  Rank local_rank(Rank rank) const { return sim::local_rank_of(options, rank); }
};

// What the caller wants to be different from the file.
struct Overrides {
  std::optional<Rank> world_size{};
  std::optional<std::string> backend{};
  std::optional<TorchRelease> torch{};
  bool brings_cluster = false;  // the scenario is put on a cluster later
  std::string selection{};      // which case, as in CaseAddress; may be empty if there is only one
};

// Loads FILE, or FILE::case. Throws InvalidScenario.
Scenario load_scenario(const std::string& address, const Overrides& overrides = {});

// The same for text that is already in memory; `file` is its name in messages.
Scenario parse_scenario(std::string text, std::string file, const Overrides& overrides = {});

}  // namespace rollcall::scenario
