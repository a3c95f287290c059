#pragma once

// What a script asked for, as a scenario that runs: the way from people's own programs to everything else.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/import/scenario_writer.h"
#include "sim/report/report.h"
#include "traces/formats/script_record.h"

namespace rollcall::scenario {

struct RecordedScript {
  std::string text;  // the scenario; empty: no rank has initialized a job
  Report report;     // of its run; where it does not say what the script did, of the recorded run
  std::vector<std::string> remarks;  // per rank that did not come to its end, and what else there is to know
};

// `timeline`: of the report.
// `cluster`: a scenario's "cluster", which the times of recorded kernels follow from; null: none, and no kernels.
// `file`: what reports call the scenario. `run`: the report of the recorded run, where all ranks ran in the simulator.
RecordedScript recorded_script(traces::ScriptRecord record, const std::string& file,
                               const Report* run = nullptr, bool timeline = false,
                               const OrderedJson* cluster = nullptr);

// The lines that read what was received, "train.py:17": of a rank that was alone, what follows is a guess. Each once.
std::vector<std::string> data_dependent_places(const traces::ScriptRecord& record);

// The lines of calls whose lists have not one tensor per member, so that a backend refuses them: a rank that is alone
// does not notice. Each once.
std::vector<std::string> refused_places(const traces::ScriptRecord& record);

// A rank that raised where others did not, "rank 1 raised FileNotFoundError (train.py:17)": a rank that was alone may
// have missed what they do. Empty: none.
std::string lone_failure(const traces::ScriptRecord& record);

// Every rank's calls begin with those that it made in `before`, up to the first that raised there.
bool goes_on_from(const traces::ScriptRecord& record, const traces::ScriptRecord& before);

}  // namespace rollcall::scenario
