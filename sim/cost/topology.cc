#include "sim/cost/topology.h"

#include <algorithm>
#include <array>
#include <span>

#include "sim/base/expects.h"

namespace rollcall::cost {

std::string_view to_string(CpuVendor vendor) {
  constexpr std::array<std::string_view, 3> names{"intel", "amd", "other"};
  return names[static_cast<std::size_t>(vendor)];
}

std::string_view to_string(PathType path) {
  constexpr std::array<std::string_view, 10> names{"LOC", "NVL", "NVB", "C2C", "PIX",
                                                   "PXB", "P2C", "PXN", "PHB", "SYS"};
  return names[static_cast<std::size_t>(path)];
}

namespace {

// Speeds per channel that NCCL's search tries, fastest first (src/graph/search.cc, speedArray*).
constexpr std::array<double, 13> intra_speeds{40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr std::array<double, 11> intra_speeds_sm90{60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr std::array<double, 11> intra_speeds_sm100{90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18};
constexpr std::array<double, 19> inter_speeds{48, 30, 28, 24, 20, 18,  15,  12,  10, 9,
                                              7,  6,  5,  4,  3,  2.4, 1.2, .24, .12};
constexpr std::array<double, 17> inter_speeds_sm90{48, 45, 42, 40, 30,  24,  22,  20, 17.5,
                                                   15, 12, 6,  3,  2.4, 1.2, .24, .12};
constexpr int channels_max = 64;

std::span<const double> intra_list(int capability) {
  return capability >= 100  ? std::span<const double>(intra_speeds_sm100)
         : capability >= 90 ? std::span<const double>(intra_speeds_sm90)
                            : std::span<const double>(intra_speeds);
}

std::span<const double> inter_list(int capability) {
  return capability >= 90 ? std::span<const double>(inter_speeds_sm90)
                          : std::span<const double>(inter_speeds);
}

// The fastest listed speed that the link carries; the link's own where it is slower than all of them.
double listed_speed(std::span<const double> speeds, double link) {
  const auto fits = std::ranges::find_if(speeds, [link](double speed) { return speed <= link; });
  return fits == speeds.end() ? link : *fits;
}

// ncclTopoDupChannels: fast channels are split into two of half the speed.
void split_fast_channels(ChannelGraph& graph, int capability, bool is_multi_node) {
  const bool stays = capability > 80 && graph.intra_speed < 50 && graph.channels > 4;
  if (graph.intra_speed < 25 || stays || graph.channels == 0) {
    return;
  }
  graph.channels *= 2;
  graph.inter_speed /= 2;
  if (graph.pattern == ChannelGraph::Pattern::ring || !is_multi_node) {
    graph.intra_speed /= 2;
  }
}

double gpu_port_speed(const Links& links) {
  if (links.nvlink != Links::NvLink::none) {
    return links.nvlink_count * links.nvlink_speed;
  }
  return links.sockets > 1 ? std::min(links.pcie_speed, links.socket_speed) : links.pcie_speed;
}

PathType intra_path_of(const Links& links, int gpus) {
  if (gpus == 1) {
    return PathType::loc;
  }
  return links.nvlink != Links::NvLink::none ? PathType::nvl
         : links.sockets > 1                 ? PathType::sys
                                             : PathType::phb;
}

ChannelGraph derive_single_node_ring(const Cluster& cluster, int gpus) {
  ChannelGraph ring;
  const double port = gpu_port_speed(cluster.links);
  ring.intra_speed = listed_speed(intra_list(cluster.compute_capability), port);
  const bool is_nvlink = cluster.links.nvlink != Links::NvLink::none;
  ring.channels =
      is_nvlink && ring.intra_speed > 0 ? std::max(1, static_cast<int>(port / ring.intra_speed)) : 1;
  ring.inter_speed = ring.intra_speed;
  ring.intra_path = intra_path_of(cluster.links, gpus);
  ring.inter_path = PathType::pix;
  ring.same_channels = cluster.links.nvlink != Links::NvLink::mesh;
  return ring;
}

// A ring between nodes leaves each node through one NIC per channel, at the NIC's speed.
ChannelGraph derive_multi_node_ring(const Cluster& cluster, int gpus) {
  const Links& links = cluster.links;
  ChannelGraph ring;
  const int usable = std::max(1, links.nics * gpus / std::max(1, cluster.gpus_built_in));
  const double nic = listed_speed(inter_list(cluster.compute_capability), links.nic_speed);
  const double port = gpus > 1 ? gpu_port_speed(links) : links.nic_speed;
  ring.channels = links.nvlink != Links::NvLink::none || gpus == 1 ? usable : 1;
  ring.inter_speed = std::min(nic, listed_speed(intra_list(cluster.compute_capability), port));
  ring.intra_speed = ring.inter_speed;
  ring.intra_path = intra_path_of(links, gpus);
  ring.inter_path = links.nic_path;
  ring.nic_latency = links.nic_latency;
  ring.same_channels = gpus == 1;
  return ring;
}

ChannelGraph derive_nvls(const Cluster& cluster, int gpus, double inter) {
  ChannelGraph nvls;
  nvls.pattern = ChannelGraph::Pattern::nvls;
  if (!cluster.links.nvls || cluster.links.nvlink != Links::NvLink::all_to_all_switch || gpus < 2) {
    return nvls;
  }
  const auto speeds = intra_list(cluster.compute_capability);
  nvls.channels = gpus;
  nvls.intra_speed = listed_speed(speeds, gpu_port_speed(cluster.links) / gpus);
  nvls.inter_speed = inter > 0 ? inter : speeds.front();
  nvls.intra_path = PathType::nvl;
  nvls.inter_path = PathType::pix;
  return nvls;
}

}  // namespace

Graphs derive_graphs(const Cluster& cluster, int gpus_per_node, bool several_nodes) {
  using Pattern = ChannelGraph::Pattern;
  const int capability = cluster.compute_capability;
  Graphs graphs;
  graphs.ring = several_nodes ? derive_multi_node_ring(cluster, gpus_per_node)
                              : derive_single_node_ring(cluster, gpus_per_node);
  graphs.nvls = derive_nvls(cluster, gpus_per_node, several_nodes ? graphs.ring.inter_speed : 0);
  graphs.tree = graphs.ring;
  graphs.tree.pattern = several_nodes && capability >= 90 ? Pattern::tree : Pattern::balanced_tree;
  split_fast_channels(graphs.ring, capability, several_nodes);
  split_fast_channels(graphs.tree, capability, several_nodes);
  graphs.channels = std::min(channels_max, 2 * graphs.ring.channels);
  graphs.nvls_channels = graphs.nvls.channels == 0 ? 0 : capability < 100 ? 16 : several_nodes ? 24 : 32;
  return graphs;
}

namespace {

// Without a NIC that NCCL knows, it talks over sockets, and takes them for about 10 Gb/s
// (src/transport/net_socket.cc).
constexpr double socket_network_speed = 1.25;

Cluster with_network(Cluster cluster) {
  Links& links = cluster.links;
  if (links.nics == 0 || links.nic_speed <= 0) {
    links.nics = 1;
    links.nic_speed = socket_network_speed;
    links.nic_path = PathType::sys;
  }
  return cluster;
}

}  // namespace

Communicator communicator_of(const Cluster& given, int ranks, int nodes) {
  const Cluster cluster = nodes > 1 ? with_network(given) : given;
  expects(nodes >= 1 && ranks >= nodes, "every node of a communicator holds a rank");
  Communicator communicator;
  communicator.ranks = ranks;
  communicator.nodes = nodes;
  communicator.compute_capability = cluster.compute_capability;
  communicator.cpu = cluster.cpu;
  communicator.links = cluster.links;
  communicator.collnet = cluster.links.sharp && nodes > 1;
  const int per_node = communicator.ranks_per_node();
  const auto known = std::ranges::find_if(cluster.layouts, [&](const Layout& layout) {
    return layout.gpus_per_node == per_node && layout.several_nodes == (nodes > 1);
  });
  communicator.graphs_are_known = known != cluster.layouts.end();
  communicator.graphs =
      communicator.graphs_are_known ? known->graphs : derive_graphs(cluster, per_node, nodes > 1);
  if (communicator.collnet && communicator.graphs.collnet_chain.channels == 0) {
    // CollNet's own search gives the tree's channels on machines with a NIC per GPU.
    communicator.graphs.collnet_chain = communicator.graphs.tree;
    communicator.graphs.collnet_chain.pattern = ChannelGraph::Pattern::collnet;
    communicator.graphs.collnet_direct = communicator.graphs.collnet_chain;
  }
  return communicator;
}

}  // namespace rollcall::cost
