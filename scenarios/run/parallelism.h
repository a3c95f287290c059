#pragma once

// Parallelism: the pipelines, parallel modules, and rings of one rank of a scenario.

#include <map>
#include <memory>

#include "scenarios/program/program.h"
#include "sim/base/site.h"
#include "sim/dtensor/parallel_module.h"
#include "sim/dtensor/ring_attention.h"
#include "sim/pipeline/schedule.h"

namespace rollcall::scenario {

class RankFrame;

class Parallelism {
 public:
  // Makes the objects of the groups that the rank belongs to; nothing is sent. `frame` is borrowed for the lifetime of
  // the object.
  explicit Parallelism(RankFrame& frame);

  // Blocks. Throws NameError for an object whose group the rank does not belong to.
  void run(TableIndex object, ParallelVerb verb, Site site);

 private:
  void construct(TableIndex object, const PipelineObject& spec);
  StageFunctions functions_of(const PipelineObject& spec);
  void run_stage(const Block& block, std::int32_t stage, std::int32_t microbatch);

  RankFrame& frame_;
  std::map<TableIndex, std::unique_ptr<PipelineSchedule>> pipelines_;
  std::map<TableIndex, ParallelModule> modules_;
  std::map<TableIndex, RingAttention> rings_;
};

}  // namespace rollcall::scenario
