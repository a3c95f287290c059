#pragma once

// ZeroRedundancyOptimizer: an optimizer whose state is sharded over the ranks. Every rank updates the
// parameters of its own shard and broadcasts them (torch/distributed/optim/zero_redundancy_optimizer.py,
// without overlap_with_ddp).
//
// Under Join it has two traps, both of them torch's: it must not be the first joinable, because a joined rank's step()
// then notifies as an active one would; and a joined rank continues to update its shard, with whatever gradients it has
// left, because DDP's shadowing writes none.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/train/join.h"
#include "sim/train/module.h"
#include "sim/train/optimizer.h"

namespace rollcall {

struct ZeroOptions {
  ProcessGroup group{};  // none: the world
  // One broadcast per rank and step instead of one per parameter.
  bool parameters_as_bucket_view = false;
  std::string name{};  // in reports
};

// Which rank updates which parameters, by index: largest parameter first, each to the rank that has the fewest elements
// so far, the lowest of several such ranks.
std::vector<std::vector<std::uint32_t>> partition_parameters(const std::vector<std::int64_t>& numel,
                                                             Rank world_size);

class ZeroRedundancyOptimizer : public Joinable {
 public:
  // parameters: borrowed. No communication. Throws ValueError for an empty list.
  ZeroRedundancyOptimizer(std::vector<Parameter*> parameters, const OptimizerOptions& optimizer,
                          ZeroOptions options = {});
  ZeroRedundancyOptimizer(const ZeroRedundancyOptimizer&) = delete;
  ZeroRedundancyOptimizer& operator=(const ZeroRedundancyOptimizer&) = delete;

  // Updates this rank's shard, then broadcasts every rank's shard. Blocks.
  void step(Site site = Site::here());
  void zero_grad(bool set_to_none = false);

  // Gathers the shards of the state on rank `to` of the group. Every rank has to call it.
  void consolidate_state_dict(Rank to = 0, Site site = Site::here());
  // The whole state, on the rank that it was consolidated on; throws RuntimeError elsewhere.
  Object state_dict() const;

  const std::vector<std::vector<std::uint32_t>>& partition() const { return shards_; }

  std::unique_ptr<JoinHook> join_hook(const Kwargs& kwargs) override;
  Device join_device() const override { return device_; }
  ProcessGroup join_process_group() const override { return group_; }
  bool hook_notifies() const override { return true; }  // main_hook is step()
  std::string name() const override { return options_.name.empty() ? "optimizer" : options_.name; }

 private:
  class Hook;
  // A broadcast in flight, and the parameters that it carries.
  struct Shipment {
    Work work;
    Tensor flat;  // with parameters_as_bucket_view
    TensorList parameters;
  };

  std::vector<Shipment> broadcast_shard(Rank rank, Site site) const;
  void sync_parameters(Site site) const;
  void observe_stale_gradients() const;

  std::vector<Parameter*> parameters_;
  ZeroOptions options_;
  ProcessGroup group_;
  Device device_;
  std::vector<std::vector<std::uint32_t>> shards_;
  std::unique_ptr<Optimizer> optimizer_;  // of this rank's shard
  std::string pairing_;
  ObjectList consolidated_;  // the shards' state, by rank; empty where it was not asked for
};

}  // namespace rollcall
