#pragma once

// A cluster, as far as NCCL's tuner uses it: machines, links, and the channel graphs that NCCL's search
// (src/graph/search.cc) finds on them.
//
// Start here to read sim/cost. The path of one query:
//   Cluster (what the user has) -> Communicator (what one process group sees of it)
//     -> Tuner (algorithm, protocol, channels, microseconds as NCCL estimates them)
//     -> Expectation (what the machine can do) -> Residuals (what measurements add, and how sure that is)
//     -> Correction (what rows measured on the machine itself say)
//
// Everything in this folder is a pure function of its arguments. Bandwidths are GB/s (10^9 bytes) and latencies
// microseconds, in double, because NCCL's own tables are; the only conversion to simulated time is to_duration in
// group_cost.h.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/c10d/op.h"
#include "sim/cost/calibration.h"

namespace rollcall::cost {

enum class CpuVendor : std::uint8_t { intel, amd, other };

// How far two devices are apart, nearest first: the order is part of the tuner's rules. NCCL
// src/graph/topo.h, PATH_*.
enum class PathType : std::uint8_t { loc, nvl, nvb, c2c, pix, pxb, p2c, pxn, phb, sys };

std::string_view to_string(CpuVendor vendor);  // "intel"
std::string_view to_string(PathType path);     // "NVL"

// NCCL's release, as ncclGetVersion returns it: 22809 is 2.28.9. Search and tuner differ between them.
inline constexpr int default_release = 22809;
inline constexpr int newest_release = 23007;
// "2.28" (its last release known here) or "2.28.9"; empty for releases older than 2.27 or newer than 2.30.
std::optional<int> parse_release(std::string_view text);
std::string release_name(int release);  // "2.28.9"

// One result of the graph search: a number of channels, and the speed of each. NCCL src/include/graph.h, ncclTopoGraph.
struct ChannelGraph {
  enum class Pattern : std::uint8_t { balanced_tree, split_tree, tree, ring, nvls, collnet };

  Pattern pattern = Pattern::ring;
  int channels = 0;        // 0: the search found nothing
  double intra_speed = 0;  // GB/s per channel, inside a node
  double inter_speed = 0;  // GB/s per channel, between nodes
  PathType intra_path = PathType::loc;
  PathType inter_path = PathType::loc;
  bool same_channels = false;  // every channel visits the ranks in the same order
  double nic_latency = 0;      // microseconds

  friend bool operator==(const ChannelGraph&, const ChannelGraph&) = default;
};

struct Graphs {
  ChannelGraph tree;
  ChannelGraph ring;
  ChannelGraph nvls;
  ChannelGraph collnet_chain;
  ChannelGraph collnet_direct;
  int channels = 0;       // of the communicator, shared by ring and tree
  int nvls_channels = 0;  // of NVLS and NVLSTree

  friend bool operator==(const Graphs&, const Graphs&) = default;
};

// The network between the machines. It decides how long a hop takes, which NCCL cannot know and measurements show.
enum class Network : std::uint8_t { infiniband, efa, slingshot, sockets };
inline constexpr std::size_t network_count = 4;

// What connects the GPUs of a machine, and the machines.
struct Links {
  enum class NvLink : std::uint8_t { none, mesh, all_to_all_switch };

  NvLink nvlink = NvLink::none;
  int nvlink_count = 0;               // per GPU
  double nvlink_speed = 0;            // GB/s per link and direction
  bool nvls = false;                  // NVLink SHARP: the switch can reduce
  double pcie_speed = 24;             // GB/s per GPU and direction
  int sockets = 2;                    // with one, GPUs meet in one PCIe host bridge
  double socket_speed = 10;           // GB/s between two sockets
  int nics = 0;                       // per node
  double nic_speed = 0;               // GB/s per NIC and direction
  PathType nic_path = PathType::pix;  // from a GPU to its NIC
  double nic_latency = 0;             // microseconds, as NCCL's network plugin states it
  bool sharp = false;                 // the network can reduce (CollNet)
  Network network = Network::infiniband;
  bool peer_access = true;  // without NVLink: whether GPUs read each other's memory over PCIe

  friend bool operator==(const Links&, const Links&) = default;
};

// Graphs that are known for a number of GPUs per node; all others are derived from the links.
struct Layout {
  int gpus_per_node = 0;
  bool several_nodes = false;
  Graphs graphs;
  int since = 0;  // the first release that finds them; the latest row up to the cluster's release counts

  friend bool operator==(const Layout&, const Layout&) = default;
};

// How the host starts a call, which the tuner leaves out and the program decides.
struct Launch {
  int gpus_per_process = 1;       // that one thread launches on, one after the other (nccl-tests -g)
  bool cuda_graphs = false;       // launches were recorded before
  bool symmetric_memory = false;  // buffers are registered as windows (nccl-tests -R 2)

  friend bool operator==(const Launch&, const Launch&) = default;
};

// A node is what NVLink joins, as NCCL counts nodes: a machine, or the trays of one NVLink domain.
struct Cluster {
  std::string name;     // as the user gave it
  std::string machine;  // "h100"; empty for one that is described in full
  int nodes = 1;
  int gpus_per_node = 8;  // that take part
  int gpus_built_in = 8;  // that a node has
  int gpus_per_host = 0;  // of a rack's trays; 0: a node is one host
  int compute_capability = 90;
  CpuVendor cpu = CpuVendor::intel;
  Links links;
  int release = default_release;
  Launch launch;
  std::vector<Layout> layouts;
  std::vector<Correction> corrections;  // from rows measured on it

  friend bool operator==(const Cluster&, const Cluster&) = default;
};

// The part of a cluster that a process group sees.
struct Communicator {
  int ranks = 1;
  int nodes = 1;
  int compute_capability = 90;  // the least of all ranks
  CpuVendor cpu = CpuVendor::intel;
  bool collnet = false;
  Graphs graphs;
  Links links;
  int release = default_release;
  Launch launch;
  int gpus_built_in = 8;  // that a node has
  std::vector<Correction> corrections;
  bool graphs_are_known = true;  // false: derived from the links by our estimate

  int ranks_per_node() const { return nodes > 0 ? ranks / nodes : ranks; }
};

// The view of a group of `ranks` on `nodes` nodes. Where nodes hold different numbers of ranks, NCCL
// calculates with the mean, rounded down (src/graph/tuning.cc: nRanks / nNodes).
Communicator communicator_of(const Cluster& cluster, int ranks, int nodes);

// GB/s from one GPU to the others of its node, and as much in the other direction.
double gpu_port_speed(const Links& links);

// The number of NICs that the ranks of a node reach.
int nics_of(const Communicator& communicator);

// The estimate for layouts on which NCCL's search has not been run. It reproduces the ring graphs of all preset NVLink
// machines, and is marked in explanations.
Graphs derive_graphs(const Cluster& cluster, int gpus_per_node, bool several_nodes);

}  // namespace rollcall::cost
