#pragma once

// ScriptedJoinable: an object of kind "joinable", whose forward and hooks are lists of statements.

#include <cstdint>
#include <memory>
#include <string>

#include "scenarios/program/program.h"
#include "sim/train/join.h"

namespace rollcall::scenario {

class RankFrame;

class ScriptedJoinable final : public Joinable {
 public:
  // Both are borrowed for the lifetime of the object. One of another kind joins without statements, in the world.
  ScriptedJoinable(RankFrame& frame, const ObjectSpec& object);

  // Makes one call of the object: notifies, unless told not to, then runs its statements.
  void forward(Site site);

  std::unique_ptr<JoinHook> join_hook(const Kwargs& kwargs) override;
  Device join_device() const override;
  ProcessGroup join_process_group() const override;
  std::string name() const override { return object_->name; }

 private:
  RankFrame* frame_;
  const ObjectSpec* object_;
  const JoinableObject* statements_;
};

}  // namespace rollcall::scenario
