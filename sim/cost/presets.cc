#include "sim/cost/presets.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include <fmt/core.h>

namespace rollcall::cost {

namespace {

using Pattern = ChannelGraph::Pattern;

// One row of what NCCL's search finds: the same for two nodes and for any larger number.
struct Found {
  int gpus;
  bool several_nodes;
  ChannelGraph tree;
  ChannelGraph ring;
  ChannelGraph nvls;
  int channels;
  int nvls_channels;
};

// channels, intra, inter, paths, whether all channels are the same.
constexpr ChannelGraph graph(Pattern pattern, int channels, double intra, double inter, PathType intra_path,
                             PathType inter_path, bool same) {
  return {pattern, channels, intra, inter, intra_path, inter_path, same, 0};
}
constexpr ChannelGraph no_nvls = graph(Pattern::nvls, 0, 0, 0, PathType::loc, PathType::loc, false);

constexpr auto balanced = Pattern::balanced_tree;
constexpr auto plain = Pattern::tree;
constexpr auto rings = Pattern::ring;
constexpr auto on_switch_graph = Pattern::nvls;
constexpr auto LOC = PathType::loc;
constexpr auto NVL = PathType::nvl;
constexpr auto PIX = PathType::pix;
constexpr auto PXN = PathType::pxn;
constexpr auto PHB = PathType::phb;
constexpr auto SYS = PathType::sys;

// 8 Hopper GPUs on four NVSwitches, a 400 Gb/s NIC beside each.
constexpr std::array<Found, 7> hopper_layouts{
    {{8, false, graph(balanced, 12, 30, 30, NVL, PIX, true), graph(rings, 12, 30, 30, NVL, PIX, true),
      graph(on_switch_graph, 8, 40, 60, NVL, PIX, false), 24, 16},
     {8, true, graph(plain, 8, 48, 48, NVL, PIX, false), graph(rings, 8, 48, 48, NVL, PIX, false),
      graph(on_switch_graph, 8, 40, 48, NVL, PIX, false), 16, 16},
     {4, false, graph(balanced, 12, 30, 30, NVL, PIX, true), graph(rings, 12, 30, 30, NVL, PIX, true),
      graph(on_switch_graph, 4, 60, 60, NVL, PIX, false), 24, 16},
     {4, true, graph(plain, 8, 48, 24, NVL, PIX, false), graph(rings, 8, 24, 24, NVL, PXN, false),
      graph(on_switch_graph, 4, 48, 48, NVL, PIX, false), 16, 16},
     {2, false, graph(balanced, 12, 60, 60, NVL, PIX, false), graph(rings, 12, 30, 30, NVL, PIX, true),
      graph(on_switch_graph, 2, 60, 60, NVL, PIX, false), 24, 16},
     {2, true, graph(plain, 4, 48, 24, NVL, PIX, false), graph(rings, 4, 24, 24, NVL, PXN, false),
      graph(on_switch_graph, 2, 48, 48, NVL, PIX, false), 8, 16},
     {1, true, graph(plain, 2, 48, 24, LOC, PIX, true), graph(rings, 2, 24, 24, LOC, PIX, true), no_nvls, 4,
      0}}};

// 8 A100 on NVSwitches, a 200 Gb/s NIC beside each.
constexpr std::array<Found, 2> a100_sxm{{{8, false, graph(balanced, 12, 20, 20, NVL, PIX, true),
                                          graph(rings, 12, 20, 20, NVL, PIX, true), no_nvls, 24, 0},
                                         {8, true, graph(balanced, 8, 30, 24, NVL, PIX, false),
                                          graph(rings, 8, 24, 24, NVL, PIX, false), no_nvls, 16, 0}}};

// 4 A100, each with four NVLinks to each other, on one socket.
constexpr std::array<Found, 1> a100_mesh{{{4, false, graph(balanced, 12, 20, 20, NVL, PIX, false),
                                           graph(rings, 12, 20, 20, NVL, PIX, false), no_nvls, 24, 0}}};

// 8 B200 on NVSwitches, a 400 Gb/s NIC beside each.
constexpr std::array<Found, 2> b200_sxm{
    {{8, false, graph(balanced, 16, 40, 40, NVL, PIX, true), graph(rings, 16, 45, 45, NVL, PIX, true),
      graph(on_switch_graph, 8, 80, 90, NVL, PIX, false), 32, 32},
     {8, true, graph(plain, 8, 96, 48, NVL, PIX, false), graph(rings, 8, 48, 48, NVL, PXN, false),
      graph(on_switch_graph, 8, 48, 48, NVL, PIX, false), 16, 24}}};

// 4 A100 on PCIe, two sockets, one 100 Gb/s NIC.
constexpr std::array<Found, 2> a100_pcie{{{4, false, graph(balanced, 1, 10, 10, SYS, PIX, true),
                                           graph(rings, 1, 10, 10, SYS, PIX, true), no_nvls, 2, 0},
                                          {4, true, graph(balanced, 1, 10, 10, SYS, SYS, true),
                                           graph(rings, 1, 10, 10, SYS, SYS, true), no_nvls, 2, 0}}};

// RTX 4090 on PCIe 4 without peer access, AMD: two share a host bridge, eight cross the sockets.
constexpr std::array<Found, 2> rtx4090{{{8, false, graph(balanced, 1, 15, 15, SYS, PIX, true),
                                         graph(rings, 1, 15, 15, SYS, PIX, true), no_nvls, 2, 0},
                                        {2, false, graph(balanced, 2, 20, 20, PHB, PIX, false),
                                         graph(rings, 2, 12, 12, PHB, PIX, true), no_nvls, 4, 0}}};

constexpr Links nvlink(Links::NvLink kind, int count, double speed, bool has_nvls, int nics, double nic) {
  Links links;
  links.nvlink = kind;
  links.nvlink_count = count;
  links.nvlink_speed = speed;
  links.nvls = has_nvls;
  links.nics = nics;
  links.nic_speed = nic;
  return links;
}

constexpr Links pcie(double speed, int sockets, double socket_speed, int nics, double nic) {
  Links links;
  links.pcie_speed = speed;
  links.sockets = sockets;
  links.socket_speed = socket_speed;
  links.nics = nics;
  links.nic_speed = nic;
  links.nic_path = PathType::sys;
  return links;
}

template <std::size_t count>
std::vector<Layout> layouts(const std::array<Found, count>& rows) {
  std::vector<Layout> result;
  for (const Found& row : rows) {
    Graphs graphs;
    graphs.tree = row.tree;
    graphs.ring = row.ring;
    graphs.nvls = row.nvls;
    graphs.channels = row.channels;
    graphs.nvls_channels = row.nvls_channels;
    result.push_back({row.gpus, row.several_nodes, graphs});
  }
  return result;
}

struct Machine {
  std::string_view description;
  Cluster cluster;
};

Machine machine(std::string_view name, std::string_view description, int gpus, int capability, CpuVendor cpu,
                Links links, std::vector<Layout> known) {
  Cluster cluster;
  cluster.name = fmt::format("{}-{}", name, gpus);
  cluster.machine = name;
  cluster.gpus_per_node = cluster.gpus_built_in = gpus;
  cluster.compute_capability = capability;
  cluster.cpu = cpu;
  cluster.links = links;
  cluster.layouts = std::move(known);
  return {description, std::move(cluster)};
}

// Link speeds are those of NCCL src/graph/topo.h. By name.
const std::vector<Machine>& catalogue() {
  constexpr auto on_switch = Links::NvLink::all_to_all_switch;
  static const std::vector<Machine> all{
      machine("a100", "8 A100 SXM on NVSwitch, 8 x 200 Gb/s", 8, 80, CpuVendor::amd,
              nvlink(on_switch, 12, 20, false, 8, 25), layouts(a100_sxm)),
      machine("a100-mesh", "4 A100 SXM, all-to-all NVLink, one AMD socket, 2 x 200 Gb/s", 4, 80,
              CpuVendor::amd, nvlink(Links::NvLink::mesh, 12, 20, false, 2, 25), layouts(a100_mesh)),
      machine("a100-pcie", "4 A100 PCIe, two Intel sockets, 100 Gb/s", 4, 80, CpuVendor::intel,
              pcie(24, 2, 10, 1, 12.5), layouts(a100_pcie)),
      machine("b200", "8 B200 SXM on NVSwitch, 8 x 400 Gb/s", 8, 100, CpuVendor::intel,
              nvlink(on_switch, 18, 40.1, true, 8, 50), layouts(b200_sxm)),
      machine("h100", "8 H100 SXM on NVSwitch, 8 x 400 Gb/s", 8, 90, CpuVendor::intel,
              nvlink(on_switch, 18, 20.6, true, 8, 50), layouts(hopper_layouts)),
      machine("h20", "8 H20 SXM on NVSwitch, 8 x 400 Gb/s (H100's links, fewer SMs)", 8, 90, CpuVendor::intel,
              nvlink(on_switch, 18, 20.6, true, 8, 50), layouts(hopper_layouts)),
      machine("h200", "8 H200 SXM on NVSwitch, 8 x 400 Gb/s", 8, 90, CpuVendor::intel,
              nvlink(on_switch, 18, 20.6, true, 8, 50), layouts(hopper_layouts)),
      machine("l40s", "8 L40S on PCIe 4, two sockets, 100 Gb/s", 8, 89, CpuVendor::amd,
              pcie(24, 2, 16, 1, 12.5), {}),
      machine("rtx4090", "8 RTX 4090 on PCIe 4, AMD, no peer access, 100 Gb/s", 8, 89, CpuVendor::amd,
              pcie(24, 2, 16, 1, 12.5), layouts(rtx4090)),
  };
  return all;
}

// The longest machine name that `name` begins with, followed by a dash.
const Machine* machine_of(std::string_view name) {
  const Machine* best = nullptr;
  for (const Machine& candidate : catalogue()) {
    const std::string& word = candidate.cluster.machine;
    const bool matches = name.starts_with(word) && name.size() > word.size() && name[word.size()] == '-';
    if (matches && (best == nullptr || word.size() > best->cluster.machine.size())) {
      best = &candidate;
    }
  }
  return best;
}

// A positive number at the front of `text`, which loses it.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 1) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

NamedCluster problem(std::string text, std::string suggestion = {}) {
  return {{}, std::move(text), std::move(suggestion)};
}

NamedCluster unknown(std::string_view name) {
  std::string known;
  for (const std::string& preset : preset_names()) {
    known += (known.empty() ? "" : ", ") + preset;
  }
  return problem(
      fmt::format("unknown cluster \"{}\"; the presets are {}, also with fewer GPUs (\"h100-4\") or with "
                  "several nodes (\"h100-2x8\")",
                  name, known));
}

// "@200G": the NICs' speed. True when the rest of the name was understood.
bool read_nic_speed(std::string_view rest, Cluster& cluster) {
  if (rest.empty()) {
    return true;
  }
  const bool marked = rest.front() == '@' && (rest.back() == 'G' || rest.back() == 'g');
  rest.remove_prefix(1);
  const auto gigabits = take_number(rest);
  if (!marked || !gigabits || rest.size() != 1) {
    return false;
  }
  const double speed = *gigabits / 8.0;  // gigabytes
  if (speed != cluster.links.nic_speed) {
    cluster.links.nic_speed = speed;
    std::erase_if(cluster.layouts, [](const Layout& layout) { return layout.several_nodes; });
  }
  return true;
}

constexpr int nodes_max = 131'072;  // 1,048,576 GPUs in machines of eight

}  // namespace

NamedCluster find_cluster(std::string_view name) {
  const Machine* found = machine_of(name);
  if (found == nullptr) {
    const Cluster* bare = find_machine(name);
    return bare == nullptr ? unknown(name)
                           : problem(fmt::format("the number of GPUs of {} is missing", name), bare->name);
  }
  Cluster cluster = found->cluster;
  std::string_view rest = name.substr(cluster.machine.size() + 1);
  std::optional<int> first = take_number(rest);
  if (!first) {
    return unknown(name);
  }
  const int built_in = cluster.gpus_built_in;
  if (rest.starts_with('x')) {
    rest.remove_prefix(1);
    cluster.nodes = *first;
    first = take_number(rest);
    if (!first) {
      return problem(fmt::format("\"{}\" ends before the number of GPUs per node", name));
    }
    cluster.gpus_per_node = *first;
    if (cluster.gpus_per_node > built_in) {
      return problem(fmt::format("a {} machine has {} GPUs", cluster.machine, built_in),
                     fmt::format("{}-{}x{}", cluster.machine, cluster.nodes, built_in));
    }
  } else if (*first <= built_in) {
    cluster.gpus_per_node = *first;
  } else if (*first % built_in == 0) {
    cluster.nodes = *first / built_in;
    cluster.gpus_per_node = built_in;
  } else {
    return problem(fmt::format("{} GPUs do not fill machines of {}; write NODESxGPUS", *first, built_in),
                   fmt::format("{}-{}x{}", cluster.machine, *first / built_in + 1, built_in));
  }
  if (!read_nic_speed(rest, cluster)) {
    return problem(fmt::format(
        "\"{}\" at the end of a cluster's name is unknown; write a NIC's speed as \"@200G\"", rest));
  }
  if (cluster.nodes > nodes_max) {
    return problem(fmt::format("{} nodes are too many; at most {} are supported", cluster.nodes, nodes_max));
  }
  cluster.name = name;
  return {std::move(cluster), {}, {}};
}

const Cluster* find_machine(std::string_view name) {
  const auto found = std::ranges::find_if(
      catalogue(), [name](const Machine& candidate) { return candidate.cluster.machine == name; });
  return found == catalogue().end() ? nullptr : &found->cluster;
}

std::vector<MachineSummary> machines() {
  std::vector<MachineSummary> result;
  for (const Machine& each : catalogue()) {
    result.push_back({each.cluster.machine, std::string(each.description), each.cluster.gpus_built_in});
  }
  return result;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Machine& each : catalogue()) {
    names.push_back(each.cluster.name);
  }
  return names;
}

}  // namespace rollcall::cost
