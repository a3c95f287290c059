#pragma once

// Converts a recorded script to a scenario that runs: the way from people's own programs to everything else.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/import/scenario_writer.h"
#include "sim/report/report.h"
#include "traces/formats/script_record.h"

namespace rollcall::scenario {

struct RecordedScript {
  std::string text;                  // the scenario; empty if no rank initialized a job
  Report report;                     // of its run; of the recorded run if it does not reproduce the script,
                                     // or if there is none and the ranks wait for each other
  std::vector<std::string> remarks;  // about ranks that did not finish, and others
  std::string reservation;           // what the scenario fails to show of the script; may be empty
  bool is_only_in_run = false;       // running the scenario does not lead to the verdict
};

// `timeline`: whether the report has one. `cluster`: a scenario's "cluster", which determines the times of recorded
// kernels; null: none, and no kernels. `file`: the scenario's name in reports. `run`: the report of the recorded run,
// if all ranks ran in the simulator.
RecordedScript recorded_script(traces::ScriptRecord record, const std::string& file,
                               const Report* run = nullptr, bool timeline = false,
                               const OrderedJson* cluster = nullptr);

// The lines that read received data, "train.py:17": for a rank that ran alone, everything after that is a guess. Each
// once.
std::vector<std::string> data_dependent_places(const traces::ScriptRecord& record);

// The lines of calls whose lists do not have one tensor per member, so that a backend refuses them: a rank that runs
// alone does not notice. Each once.
std::vector<std::string> refused_places(const traces::ScriptRecord& record);

// A rank that raised where others did not, "rank 1 raised FileNotFoundError (train.py:17)": a rank that ran alone may
// have missed what others do. Empty if there is none.
std::string lone_failure(const traces::ScriptRecord& record);

// True if every rank's calls begin with those that it made in `before`, up to the first that raised there.
bool goes_on_from(const traces::ScriptRecord& record, const traces::ScriptRecord& before);

}  // namespace rollcall::scenario
