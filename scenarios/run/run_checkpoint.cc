// The interpreter, the part about torch.distributed.checkpoint.

#include <optional>

#include <fmt/core.h>

#include "scenarios/run/interpreter.h"
#include "scenarios/run/rank_frame.h"
#include "sim/train/checkpoint.h"

namespace rollcall::scenario {

void run_checkpoint(RankFrame& frame, const CheckpointCall& call, Site site) {
  const LabelScope scope(frame, call.label);
  checkpoint::StateDict state;
  const auto add = [&](SlotIndex slot, bool is_shard) {
    frame.touch({slot}, call.saves ? Observation::Access::read : Observation::Access::write, site);
    state.push_back({frame.program().tensor_names[slot], frame.read({slot}), is_shard});
  };
  for (const SlotIndex tensor : call.tensors) {
    add(tensor, false);
  }
  for (const SlotIndex shard : call.shards) {
    add(shard, true);
  }
  for (const TableIndex object : call.objects) {
    TrainedObject& model = frame.trained(object);
    std::size_t count = 0;
    for (const Parameter* const parameter : model.parameters()) {
      const std::string& name = frame.program().objects[object].name;
      state.push_back({fmt::format("{}.{}", name, count++), parameter->value, model.is_sharded()});
    }
  }
  const checkpoint::CheckpointOptions options{.group = frame.group(call.group), .no_dist = call.no_dist};
  const std::string id = compose(frame, call.checkpoint_id);
  if (call.saves) {
    checkpoint::save(state, id, options, site);
  } else {
    checkpoint::load(state, id, options, site);
  }
  block_host(frame);
}

}  // namespace rollcall::scenario
