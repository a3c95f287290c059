#pragma once

// Clusters people name: "h100-8", "a100-2x8", "h200-16", "h100-4x8@200G".
//
// The graphs of the presets are what NCCL 2.28.9's own search finds on descriptions of such machines.
// A real machine with other NICs, other PCIe switches or NCCL_* variables can differ.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cost/topology.h"

namespace rollcall::cost {

// A cluster, or the problem with its name: exactly one of the two.
struct NamedCluster {
  std::optional<Cluster> cluster;
  std::string problem;
  std::string suggestion;  // may be empty
};

// MACHINE-GPUS or MACHINE-NODESxGPUS, with an optional @SPEED of each NIC in Gb/s. More GPUs than a
// machine holds are spread over as many machines as it takes.
NamedCluster find_cluster(std::string_view name);

// One full node of the machine; null for an unknown one.
const Cluster* find_machine(std::string_view name);

struct MachineSummary {
  std::string name;         // "h100"
  std::string description;  // one line
  int gpus_per_node = 0;
};

// Sorted by name.
std::vector<MachineSummary> machines();

// One name for each machine, with all its GPUs: "a100-8", "rtx4090-8", ...
std::vector<std::string> preset_names();

}  // namespace rollcall::cost
