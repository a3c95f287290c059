#pragma once

// A cluster file from what NCCL writes itself: its log (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING),
// NCCL_TOPO_DUMP_FILE and NCCL_GRAPH_DUMP_FILE. Several files complete each other.

#include <string>
#include <vector>

namespace rollcall::measured {

struct ClusterFile {
  std::string json;                  // what --cluster reads
  std::vector<std::string> remarks;  // what was found, and what had to be assumed
};

// Throws InvalidScenario for a file that is none of these, std::invalid_argument when all of them together do not
// describe a machine.
ClusterFile cluster_from(const std::vector<std::string>& paths);

}  // namespace rollcall::measured
