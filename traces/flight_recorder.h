#pragma once

// Flight Recorder dumps: what PyTorch leaves behind when a collective times out, one file per rank, as
// pickle or JSON, gzipped or not, of any backend (nccl, gloo, xccl, TorchComms, ...).
//
// Kept: calls with shapes, dtypes, state, times and stacks, group membership, progress counters.
// Ignored: library versions, thread names, communicator dumps (nccl_comm_state), ids that mean nothing
// in another process (record_id, op_id). Versions 2.0 to 2.11 are read by the keys that are there.
// Written by torch/csrc/distributed/c10d/FlightRecorderDetail.hpp (dump, dump_json).

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/check/dump.h"

namespace rollcall::traces {

// A file that was not used, or not as the user may think.
struct FileProblem {
  std::string file;
  std::string message;  // with the byte offset where there is one

  friend bool operator==(const FileProblem&, const FileProblem&) = default;
};

struct ReadResult {
  check::JobDump job;
  std::vector<FileProblem> problems;  // by file
};

// Called by any of the reading threads when a file is through: how many are, of how many.
using ReadProgress = std::function<void(std::size_t done, std::size_t all)>;

// Files and folders (searched for dumps, other files are passed over) as one job. Reads on all cores;
// the result does not depend on their number nor on the order of `paths`. A file that cannot be read is
// a problem, not an error: the other ranks are still worth reading. Throws std::filesystem errors only
// for folders that cannot be listed.
ReadResult read_flight_recorder(const std::vector<std::string>& paths, const ReadProgress& progress = {});

}  // namespace rollcall::traces
