#pragma once

// torch.distributed.checkpoint's save and load. Tensors go to files, not over the network; ranks only exchange plans of
// which rank writes or reads what (state_dict_saver.py, state_dict_loader.py, utils.py, _DistWrapper):
//
//   save   every rank's plan to rank 0, each rank's part of the common plan back, then a report of what was written to
//          rank 0, and the metadata to all ranks
//   load   plans to rank 0 and back, and an all_gather that says that all ranks have read. PyTorch 2.6 gathers the keys
//          of all ranks' state first.
//
// Each is a few object collectives, so a rank that does not arrive hangs the others. An error on one rank does not: it
// travels with the plan or the report, and all ranks raise CheckpointException.
//
// The objects that are sent have the same fields as torch's, but not Python's names of classes, so they are shorter.
// async_save, other planners and storages, and resharding at load are not simulated.

#include <string>
#include <vector>

#include "sim/base/site.h"
#include "sim/c10d/process_group.h"
#include "sim/tensor/tensor.h"

namespace rollcall::checkpoint {

struct Entry {
  std::string name;
  Tensor value;           // load writes into it
  bool is_shard = false;  // this rank's part of a tensor, as of a DTensor; else every rank has all of it
};
using StateDict = std::vector<Entry>;

struct CheckpointOptions {
  ProcessGroup group{};  // process_group; none: the world
  bool no_dist = false;  // each rank on its own, without calls
};

// Throws AttributeError in PyTorch 1.13, which has neither.
void save(const StateDict& state, const std::string& checkpoint_id, const CheckpointOptions& options = {},
          Site site = Site::here());
// Throws CheckpointException for a checkpoint that does not exist, a key that it lacks, and a tensor of another size.
void load(const StateDict& state, const std::string& checkpoint_id, const CheckpointOptions& options = {},
          Site site = Site::here());

}  // namespace rollcall::checkpoint
