#pragma once

// Training: the models and optimizers of one rank of a scenario.

#include <functional>
#include <memory>
#include <source_location>
#include <vector>

#include "scenarios/program/program.h"
#include "sim/base/expects.h"
#include "sim/train/join.h"
#include "sim/train/module.h"

namespace rollcall::scenario {

class RankFrame;

// A model or an optimizer. Its functions are what statements do with it. A kind overrides those that it has; a scenario
// that asks for another one does not load.
class TrainedObject {
 public:
  virtual ~TrainedObject() = default;

  // A model's. Forward runs the parallel model's part around `body`, the statements of the module itself.
  virtual void forward(const ModelPass& /*pass*/, Site /*site*/, const std::function<void()>& /*body*/) {
    lacks_verb();
  }
  // Produces gradients for all parameters except the unused ones, in reverse order.
  virtual void backward(const ModelPass& /*pass*/, Site /*site*/) { lacks_verb(); }
  // Starts no_sync for as long as the result lives.
  virtual std::shared_ptr<void> no_sync() { lacks_verb(); }
  virtual void clip_grad_norm(const action::ClipGradNorm& /*clip*/, Site /*site*/) { lacks_verb(); }
  // A method of FSDPModule.
  virtual void call(const action::ShardingCall& /*call*/, Site /*site*/) { lacks_verb(); }
  // All of them, or this rank's shards.
  virtual std::vector<Parameter*> parameters() { lacks_verb(); }
  virtual bool is_sharded() const { return false; }

  // An optimizer's.
  virtual void step(Site /*site*/) { lacks_verb(); }
  // Gathers the state of a sharded optimizer on this rank of its group. Blocks.
  virtual void consolidate(std::int64_t /*to*/, Site /*site*/) { lacks_verb(); }

  // For a sharded model, gathers every unit's parameters on every rank; for a sharded optimizer, throws RuntimeError
  // unless its state was consolidated here. Otherwise it is local.
  virtual void state_dict(Site /*site*/) {}
  // Null for an optimizer that is not sharded. Throws AttributeError for a model without a join_hook.
  virtual Joinable* joinable() { return nullptr; }

 private:
  [[noreturn]] static void lacks_verb() {
    fail_expectation("an object of a scenario that loads is asked only for what its kind can do",
                     std::source_location::current());
  }
};

// Blocks, and throws what the constructors of models throw. Returns null for an object of another kind, and for one of
// a group that the rank does not belong to. The frame is borrowed, and has the objects that come before this one.
std::unique_ptr<TrainedObject> make_trained_object(RankFrame& frame, const ObjectSpec& object);

// The same for one of kind "fully_shard".
std::unique_ptr<TrainedObject> make_fully_sharded(RankFrame& frame, const ObjectSpec& object,
                                                  const FullyShardedObject& spec);

// What Join raises for a model of this type.
[[noreturn]] void refuse_join(const char* type);

}  // namespace rollcall::scenario
