#pragma once

// Makes a cluster file from files that NCCL writes: its log (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING),
// NCCL_TOPO_DUMP_FILE, and NCCL_GRAPH_DUMP_FILE. Several files complement each other.

#include <string>
#include <vector>

namespace rollcall::measured {

struct ClusterFile {
  std::string json;                  // the format that --cluster reads
  std::vector<std::string> remarks;  // what was found, and what had to be assumed
};

// Throws InvalidScenario if a file is none of these, and std::invalid_argument if all of them together do not describe
// a machine.
ClusterFile cluster_from(const std::vector<std::string>& paths);

}  // namespace rollcall::measured
