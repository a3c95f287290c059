#pragma once

// Writes what a rank's Flight Recorder would have left behind: version 2.10 of the format, with the keys and in
// the order of torch/csrc/distributed/c10d/FlightRecorderDetail.hpp (dump, dump_json) in PyTorch 2.10. recordings.h
// reads back the same dump.

#include <string>

#include "sim/diagnose/dump.h"

namespace rollcall::traces {

// `dump` refers to the calls, stacks, and groups of `job`.
std::string write_dump_pickle(const check::JobDump& job, const check::RankDump& dump);
// Omits stacks and writes counters as texts, as PyTorch's own JSON does.
std::string write_dump_json(const check::JobDump& job, const check::RankDump& dump);

}  // namespace rollcall::traces
