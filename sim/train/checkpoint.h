#pragma once

// torch.distributed.checkpoint's save and load. Tensors go to files, not over the network; what ranks tell each other
// is who writes or reads what (state_dict_saver.py, state_dict_loader.py, utils.py, _DistWrapper):
//
//   save   every rank's plan to rank 0, each rank's part of the common plan back, then a report of what was written to
//          rank 0, and the metadata to everybody
//   load   plans to rank 0 and back, and an all_gather that says that everybody has read. PyTorch 2.6 gathers the keys
//          of everybody's state first.
//
// Each is a few object collectives, so a rank that does not come hangs the others. An error on one rank does not: it
// travels with the plan or the report, and everybody raises CheckpointException.
//
// The objects that travel have the fields of torch's, without Python's names of classes: they are shorter.
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
  bool is_shard = false;  // this rank's part of a tensor, as DTensors have it; else everybody has all of it
};
using StateDict = std::vector<Entry>;

struct CheckpointOptions {
  ProcessGroup group{};  // process_group; none: the world
  bool no_dist = false;  // each rank by itself, without calls
};

// AttributeError in PyTorch 1.13, which has neither.
void save(const StateDict& state, const std::string& checkpoint_id, const CheckpointOptions& options = {},
          Site site = Site::here());
// CheckpointException for a checkpoint that is not there, a key that it lacks, and a tensor of another size.
void load(const StateDict& state, const std::string& checkpoint_id, const CheckpointOptions& options = {},
          Site site = Site::here());

}  // namespace rollcall::checkpoint
