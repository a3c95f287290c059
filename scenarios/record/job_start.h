#pragma once

// How the ranks of a script begin: what they say until they have initialized the job.
//
// A script may create stores of its own before that, and pass one to init_process_group. Only init_process_group tells
// the backend, without which there is no simulated job, so until then calls on stores are answered here.

#include <optional>
#include <vector>

#include "scenarios/record/rank_link.h"
#include "scenarios/record/rank_messages.h"
#include "sim/engine/simulate.h"
#include "traces/formats/script_record.h"

namespace rollcall::scenario {

struct RankStart {
  std::optional<StoreQuestion> waits;  // without an answer: no rank had set its keys
  bool has_initialized = false;
  traces::ScriptSite init_site;
};

struct JobStart {
  sim::Options options;  // with the store's contents, and the backend on GPUs if ranks differ
  std::vector<RankStart> ranks;
  RankSet silent;

  // init_process_group waits for every rank of the job, so it matters only if one does not call it.
  bool all_have_initialized() const;
};

// Returns when every rank has initialized the job, has ended, or waits for a key that no rank has set.
JobStart start_job(std::vector<RankLink>& links);

}  // namespace rollcall::scenario
