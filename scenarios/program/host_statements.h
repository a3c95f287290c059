#pragma once

// Statements about groups and the store, as a Program stores them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/program/operand.h"
#include "sim/c10d/device_mesh.h"
#include "sim/c10d/host_calls.h"

namespace rollcall::scenario {

struct GroupStatement {
  enum class Kind : std::uint8_t { new_group, new_subgroups, split_group, destroy, monitored_barrier };

  Kind kind = Kind::new_group;
  SlotIndex group =
      no_slot;  // of the frame's groups: split_group's parent, or the group of the call; no_slot: world
  SlotIndex made = no_slot;                    // of the frame's groups: `as`
  std::optional<RankList> ranks;               // new_group; none: all ranks
  std::optional<std::vector<RankList>> lists;  // split_group; none: one list of all ranks
  Operand size;                                // new_subgroups; absent: the GPUs of a host
  std::optional<Duration> timeout;
  bool is_local = false;        // new_group: use_local_synchronization
  bool is_on_gloo = false;      // new_group, in a job on nccl
  bool everything = false;      // destroy_process_group without a group
  bool wait_all_ranks = false;  // monitored_barrier
  TableIndex label = none;      // of Program::strings
};

// init_device_mesh, and the dimensions that are flattened at once.
struct MeshStatement {
  MeshShape shape;
  std::vector<SlotIndex> made;  // by dimension, of the frame's groups
  struct Flattened {
    std::string name;
    std::vector<std::string> dims;
    SlotIndex made = no_slot;
  };
  std::vector<Flattened> flattened;
  TableIndex label = none;  // of Program::strings
};

struct StoreStatement {
  StoreCall::Kind kind = StoreCall::Kind::get;
  std::vector<TableIndex> keys;     // of Program::texts
  TableIndex value = none;          // of Program::texts: the value that set and compare_set set
  TableIndex expected = none;       // of Program::texts: the value that compare_set expects; none: no value
  TableIndex want = none;           // of Program::texts: the value that the caller of get relies on
  Operand amount;                   // add
  SlotIndex variable = no_slot;     // `as`: of the frame's variables
  std::optional<Duration> timeout;  // get, wait
  TableIndex label = none;          // of Program::strings
};

}  // namespace rollcall::scenario
