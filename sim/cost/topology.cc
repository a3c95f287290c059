#include "sim/cost/topology.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include <fmt/core.h>

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

double gpu_port_speed(const Links& links) {
  if (links.nvlink != Links::NvLink::none) {
    return links.nvlink_count * links.nvlink_speed;
  }
  return links.sockets > 1 ? std::min(links.pcie_speed, links.socket_speed) : links.pcie_speed;
}

namespace {

// The last release of each minor one.
constexpr std::array<int, 4> last_releases{22707, 22809, 22907, newest_release};

}  // namespace

std::optional<int> parse_release(std::string_view text) {
  std::array<int, 3> parts{};
  std::size_t count = 0;
  while (count < parts.size()) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parts[count]);
    if (error != std::errc() || parts[count] < 0 || parts[count] > 99) {
      return std::nullopt;
    }
    ++count;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty() || text.front() != '.') {
      break;
    }
    text.remove_prefix(1);
  }
  if (!text.empty() || count < 2) {
    return std::nullopt;
  }
  const int minor = 10'000 * parts[0] + 100 * parts[1];
  for (const int last : last_releases) {
    if (last / 100 == minor / 100) {
      return count == 2 ? last : minor + parts[2];
    }
  }
  return std::nullopt;
}

std::string release_name(int release) {
  return fmt::format("{}.{}.{}", release / 10'000, release / 100 % 100, release % 100);
}

namespace {

// Speeds per channel that NCCL's search tries, fastest first (src/graph/search.cc, speedArray*), in 2.30.7.
// Older releases lack some of Blackwell's.
struct ListedSpeed {
  constexpr ListedSpeed(double listed, int first_release = 0) : speed(listed), since(first_release) {}

  double speed;
  int since;
};
using Speeds = std::span<const ListedSpeed>;
constexpr ListedSpeed intra_speeds[]{40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr ListedSpeed intra_speeds_sm90[]{60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr ListedSpeed intra_speeds_sm100[]{90, 80, 70, 60, 50, {45, 22902}, 40, 30, 24, 20, 19, 18};
constexpr ListedSpeed inter_speeds[]{48, 30, 28, 24, 20, 18,  15,  12,  10, 9,
                                     7,  6,  5,  4,  3,  2.4, 1.2, .24, .12};
constexpr ListedSpeed inter_speeds_sm90[]{48, 45, 42, 40, 30,  24,  22,  20, 17.5,
                                          15, 12, 6,  3,  2.4, 1.2, .24, .12};
constexpr ListedSpeed inter_speeds_sm100[]{96, {86, 23003}, {80, 22907}, 48, 45.1, 42, 40,  30,  24,  22,
                                           20, 17.5,        15,          12, 6,    3,  2.4, 1.2, .24, .12};
constexpr int channels_max = 64;
constexpr int nvls_heads_max = 32;  // NCCL_MAX_NVLS_ARITY

Speeds intra_list(int capability) {
  return capability >= 100  ? Speeds(intra_speeds_sm100)
         : capability >= 90 ? Speeds(intra_speeds_sm90)
                            : Speeds(intra_speeds);
}

Speeds inter_list(int capability) {
  return capability >= 100  ? Speeds(inter_speeds_sm100)
         : capability >= 90 ? Speeds(inter_speeds_sm90)
                            : Speeds(inter_speeds);
}

// The fastest listed speed that the link carries; the link's own where it is slower than all of them.
double listed_speed(Speeds speeds, int release, double link) {
  const auto fits = std::ranges::find_if(
      speeds, [=](const ListedSpeed& listed) { return listed.since <= release && listed.speed <= link; });
  return fits == speeds.end() ? link : fits->speed;
}

struct SharedChannels {
  int channels = 0;
  double speed = 0;
};

// The channels that the search chooses when `total` GB/s can be shared by channels of at most `link` each: it goes down
// the list while the next speed is more than 0.49 of the best so far, and keeps what carries more.
SharedChannels best_channels(Speeds speeds, int release, double link, double total, int most) {
  SharedChannels best;
  for (const auto& [speed, since] : speeds) {
    if (since > release || speed > link) {
      continue;
    }
    if (best.channels > 0 && speed < 0.49 * best.speed) {
      break;
    }
    const int channels = std::min(most, static_cast<int>(total / speed));
    if (channels * speed > best.channels * best.speed) {
      best = {channels, speed};
    }
  }
  return best.channels > 0 ? best : SharedChannels{1, std::min(link, total)};
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
  const bool is_nvlink = cluster.links.nvlink != Links::NvLink::none;
  const SharedChannels found = best_channels(intra_list(cluster.compute_capability), cluster.release, port,
                                             port, is_nvlink ? channels_max : 1);
  ring.channels = found.channels;
  ring.intra_speed = ring.inter_speed = found.speed;
  ring.intra_path = intra_path_of(cluster.links, gpus);
  ring.inter_path = PathType::pix;
  ring.same_channels = cluster.links.nvlink != Links::NvLink::mesh;
  return ring;
}

// The number of NICs that `gpus` GPUs of a node reach.
int usable_nics(const Links& links, int gpus, int built_in) {
  return std::max(1, links.nics * gpus / std::max(1, built_in));
}

// The bandwidth that the channels entering a node can share on their way through its GPUs. Each channel comes in
// through a NIC, so a GPU's port carries all of them except those that enter at that GPU.
double through_node(const Cluster& cluster, int gpus) {
  return gpus > 1 ? gpu_port_speed(cluster.links) * gpus / (gpus - 1) : cluster.links.nic_speed;
}

// A ring between nodes leaves each node through one NIC per channel, at the NIC's speed or, where the NICs
// together carry more than a GPU's port, at the port's.
ChannelGraph derive_multi_node_ring(const Cluster& cluster, int gpus) {
  const Links& links = cluster.links;
  ChannelGraph ring;
  const int usable = usable_nics(links, gpus, cluster.gpus_built_in);
  const Speeds speeds = inter_list(cluster.compute_capability);
  const double nic = listed_speed(speeds, cluster.release, links.nic_speed);
  if (links.nvlink == Links::NvLink::none && gpus > 1) {
    ring.channels = 1;
    ring.inter_speed = std::min(
        nic, listed_speed(intra_list(cluster.compute_capability), cluster.release, gpu_port_speed(links)));
  } else if (usable * nic <= through_node(cluster, gpus) || gpus == 1) {
    ring.channels = std::min(usable, channels_max);
    ring.inter_speed = nic;
  } else {
    const SharedChannels found = best_channels(speeds, cluster.release, nic, gpu_port_speed(links), usable);
    ring.channels = found.channels;
    ring.inter_speed = found.speed;
  }
  ring.intra_speed = ring.inter_speed;
  ring.intra_path = intra_path_of(links, gpus);
  ring.inter_path = links.nic_path;
  ring.nic_latency = links.nic_latency;
  ring.same_channels = gpus == 1;
  return ring;
}

// The search's second pass raises the speed of a tree's channels inside a node as far as the ports allow, up to twice
// the speed between nodes.
double tree_intra_speed(const Cluster& cluster, int gpus, const ChannelGraph& tree) {
  if (cluster.links.nvlink == Links::NvLink::none || gpus == 1) {
    return tree.intra_speed;
  }
  const double port = through_node(cluster, gpus) / tree.channels;
  return std::max(tree.intra_speed, listed_speed(inter_list(cluster.compute_capability), cluster.release,
                                                 std::min(port, 2 * tree.intra_speed)));
}

// `inter` is the ring's speed between nodes; 0: there is one node.
ChannelGraph derive_nvls(const Cluster& cluster, int gpus, double inter) {
  ChannelGraph nvls;
  nvls.pattern = ChannelGraph::Pattern::nvls;
  if (!cluster.links.nvls || cluster.links.nvlink != Links::NvLink::all_to_all_switch || gpus < 2) {
    return nvls;
  }
  const int capability = cluster.compute_capability;
  const Speeds speeds = capability >= 100 && inter > 0 ? inter_list(capability) : intra_list(capability);
  nvls.channels = std::min(gpus, nvls_heads_max);
  nvls.intra_speed = listed_speed(speeds, cluster.release, gpu_port_speed(cluster.links) / nvls.channels);
  nvls.inter_speed = inter > 0 ? inter : speeds.front().speed;
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
  if (several_nodes) {
    graphs.tree.intra_speed = tree_intra_speed(cluster, gpus_per_node, graphs.tree);
  }
  graphs.channels = std::min(channels_max, 2 * graphs.ring.channels);
  graphs.nvls_channels = graphs.nvls.channels == 0 ? 0 : capability < 100 ? 16 : several_nodes ? 24 : 32;
  return graphs;
}

namespace {

// Without a NIC that it knows, NCCL uses sockets, and assumes that they carry about 10 Gb/s
// (src/transport/net_socket.cc).
constexpr double socket_network_speed = 1.25;

Cluster with_network(Cluster cluster) {
  Links& links = cluster.links;
  if (links.nics == 0 || links.nic_speed <= 0) {
    links.nics = 1;
    links.nic_speed = socket_network_speed;
    links.nic_path = PathType::sys;
    links.network = Network::sockets;
  }
  return cluster;
}

}  // namespace

int nics_of(const Communicator& communicator) {
  return usable_nics(communicator.links, communicator.ranks_per_node(), communicator.gpus_built_in);
}

Communicator communicator_of(const Cluster& given, int ranks, int nodes) {
  const Cluster cluster = nodes > 1 ? with_network(given) : given;
  expects(nodes >= 1 && ranks >= nodes, "every node of a communicator holds a rank");
  Communicator communicator;
  communicator.ranks = ranks;
  communicator.nodes = nodes;
  communicator.compute_capability = cluster.compute_capability;
  communicator.cpu = cluster.cpu;
  communicator.links = cluster.links;
  communicator.release = cluster.release;
  communicator.launch = cluster.launch;
  communicator.gpus_built_in = cluster.gpus_built_in;
  communicator.corrections = cluster.corrections;
  communicator.collnet = cluster.links.sharp && nodes > 1;
  const int per_node = communicator.ranks_per_node();
  const Layout* known = nullptr;
  for (const Layout& layout : cluster.layouts) {
    const bool fits = layout.gpus_per_node == per_node && layout.several_nodes == (nodes > 1);
    if (fits && layout.since <= cluster.release && (known == nullptr || known->since <= layout.since)) {
      known = &layout;
    }
  }
  communicator.graphs_are_known = known != nullptr;
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
