#include "sim/cost/presets.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <span>
#include <string>

#include <fmt/core.h>

#include "sim/base/expects.h"

namespace rollcall::cost {

namespace {

using Pattern = ChannelGraph::Pattern;

// channels, intra, inter, paths, whether all channels are the same.
constexpr ChannelGraph graph(Pattern pattern, int channels, double intra, double inter, PathType intra_path,
                             PathType inter_path, bool same) {
  return {pattern, channels, intra, inter, intra_path, inter_path, same, 0};
}

// One row of what NCCL's search finds: the same for two nodes and for any larger number. `since`: the first of NCCL's
// releases that finds it.
constexpr Layout found(int gpus, bool several_nodes, const ChannelGraph& tree, const ChannelGraph& ring,
                       const ChannelGraph& nvls, int channels, int nvls_channels, int since = 0) {
  return {gpus, several_nodes, {tree, ring, nvls, {}, {}, channels, nvls_channels}, since};
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

// 8 Hopper GPUs on four NVSwitches, with a 400 Gb/s NIC each.
constexpr Layout hopper_layouts[]{
    found(8, false, graph(balanced, 12, 30, 30, NVL, PIX, true), graph(rings, 12, 30, 30, NVL, PIX, true),
          graph(on_switch_graph, 8, 40, 60, NVL, PIX, false), 24, 16),
    found(8, true, graph(plain, 8, 48, 48, NVL, PIX, false), graph(rings, 8, 48, 48, NVL, PIX, false),
          graph(on_switch_graph, 8, 40, 48, NVL, PIX, false), 16, 16),
    found(4, false, graph(balanced, 12, 30, 30, NVL, PIX, true), graph(rings, 12, 30, 30, NVL, PIX, true),
          graph(on_switch_graph, 4, 60, 60, NVL, PIX, false), 24, 16),
    found(4, true, graph(plain, 8, 48, 24, NVL, PIX, false), graph(rings, 8, 24, 24, NVL, PXN, false),
          graph(on_switch_graph, 4, 48, 48, NVL, PIX, false), 16, 16),
    found(2, false, graph(balanced, 12, 60, 60, NVL, PIX, false), graph(rings, 12, 30, 30, NVL, PIX, true),
          graph(on_switch_graph, 2, 60, 60, NVL, PIX, false), 24, 16),
    found(2, true, graph(plain, 4, 48, 24, NVL, PIX, false), graph(rings, 4, 24, 24, NVL, PXN, false),
          graph(on_switch_graph, 2, 48, 48, NVL, PIX, false), 8, 16),
    found(1, true, graph(plain, 2, 48, 24, LOC, PIX, true), graph(rings, 2, 24, 24, LOC, PIX, true), no_nvls,
          4, 0)};

// 8 A100 on NVSwitches, with a 200 Gb/s NIC each.
constexpr Layout a100_sxm[]{found(8, false, graph(balanced, 12, 20, 20, NVL, PIX, true),
                                  graph(rings, 12, 20, 20, NVL, PIX, true), no_nvls, 24, 0),
                            found(8, true, graph(balanced, 8, 30, 24, NVL, PIX, false),
                                  graph(rings, 8, 24, 24, NVL, PIX, false), no_nvls, 16, 0)};

// 4 A100, each with four NVLinks to each other, on one socket.
constexpr Layout a100_mesh[]{found(4, false, graph(balanced, 12, 20, 20, NVL, PIX, false),
                                   graph(rings, 12, 20, 20, NVL, PIX, false), no_nvls, 24, 0)};

// 8 B200 on NVSwitches, with a 400 Gb/s NIC each. The row of 2.29.7, whose list has 80, is inferred.
constexpr Layout b200_sxm[]{
    found(8, false, graph(balanced, 16, 40, 40, NVL, PIX, true), graph(rings, 16, 45, 45, NVL, PIX, true),
          graph(on_switch_graph, 8, 80, 90, NVL, PIX, false), 32, 32),
    found(8, true, graph(plain, 8, 96, 48, NVL, PIX, false), graph(rings, 8, 48, 48, NVL, PXN, false),
          graph(on_switch_graph, 8, 48, 48, NVL, PIX, false), 16, 24),
    found(8, true, graph(plain, 8, 96, 48, NVL, PIX, false), graph(rings, 8, 48, 48, NVL, PXN, false),
          graph(on_switch_graph, 8, 80, 48, NVL, PIX, false), 16, 24, 22907)};

// 4 A100 on PCIe, two sockets, one 100 Gb/s NIC.
constexpr Layout a100_pcie[]{found(4, false, graph(balanced, 1, 10, 10, SYS, PIX, true),
                                   graph(rings, 1, 10, 10, SYS, PIX, true), no_nvls, 2, 0),
                             found(4, true, graph(balanced, 1, 10, 10, SYS, SYS, true),
                                   graph(rings, 1, 10, 10, SYS, SYS, true), no_nvls, 2, 0)};

// RTX 4090 on PCIe 4 without peer access, AMD: two share a host bridge, eight cross the sockets.
constexpr Layout rtx4090[]{found(8, false, graph(balanced, 1, 15, 15, SYS, PIX, true),
                                 graph(rings, 1, 15, 15, SYS, PIX, true), no_nvls, 2, 0),
                           found(2, false, graph(balanced, 2, 20, 20, PHB, PIX, false),
                                 graph(rings, 2, 12, 12, PHB, PIX, true), no_nvls, 4, 0)};

constexpr Links nvlink(Links::NvLink kind, int count, double speed, bool has_nvls, int nics, double nic) {
  return {.nvlink = kind,
          .nvlink_count = count,
          .nvlink_speed = speed,
          .nvls = has_nvls,
          .nics = nics,
          .nic_speed = nic};
}

constexpr Links pcie(double speed, int sockets, double socket_speed, int nics, double nic) {
  return {.pcie_speed = speed,
          .sockets = sockets,
          .socket_speed = socket_speed,
          .nics = nics,
          .nic_speed = nic,
          .nic_path = SYS};
}

using Layouts = std::span<const Layout>;

struct Machine {
  std::string_view description;
  Cluster cluster;
};

Machine machine(std::string_view name, std::string_view description, int gpus, int capability, CpuVendor cpu,
                Links links, Layouts known) {
  Cluster cluster;
  cluster.name = fmt::format("{}-{}", name, gpus);
  cluster.machine = name;
  cluster.gpus_per_node = cluster.gpus_built_in = gpus;
  cluster.compute_capability = capability;
  cluster.cpu = cpu;
  cluster.links = links;
  cluster.layouts.assign(known.begin(), known.end());
  return {description, std::move(cluster)};
}

// The rows for one node, for machines with another network. They must come first.
Layouts single_node(Layouts rows) {
  expects(std::ranges::is_partitioned(rows, std::logical_not(), &Layout::several_nodes),
          "the rows for one node come first");
  return rows.first(
      static_cast<std::size_t>(std::ranges::find(rows, true, &Layout::several_nodes) - rows.begin()));
}

constexpr Links without_peer_access(Links links) {
  links.peer_access = false;
  return links;
}

// The latency in microseconds that the network's plugin reports to NCCL.
constexpr Links stating(double latency, Links links) {
  links.nic_latency = latency;
  return links;
}

constexpr Links on(Network network, Links links) {
  links.network = network;
  return links;
}

// Several hosts share one NVLink domain: `hosts` trays of `gpus` each.
Machine rack(std::string_view name, std::string_view description, int hosts, int gpus, int capability,
             Links links) {
  Machine result = machine(name, description, hosts * gpus, capability, CpuVendor::other, links, {});
  result.cluster.gpus_per_host = gpus;
  return result;
}

// Link speeds are those of NCCL src/graph/topo.h; counts and NICs are the vendors': NVIDIA's data sheets of DGX and HGX
// A100, H100, H200, B200, B300 and of GB200 and GB300 NVL72, NVIDIA's export notices for A800, H800 and H20 (NVLink of
// 400 GB/s both ways where it is reduced), AWS's pages on P4d, P5 and P5en, and the pages on Polaris, Perlmutter (ALCF,
// NERSC) and Alps (CSCS). Sorted by name.
const std::vector<Machine>& catalog() {
  constexpr auto on_switch = Links::NvLink::all_to_all_switch;
  constexpr auto mesh = Links::NvLink::mesh;
  constexpr double a100_link = 20;
  constexpr double h100_link = 20.6;
  constexpr double b200_link = 40.1;
  static const std::vector<Machine> all{
      machine("a100", "8 A100 SXM on NVSwitch, 8 x 200 Gb/s", 8, 80, CpuVendor::amd,
              nvlink(on_switch, 12, a100_link, false, 8, 25), a100_sxm),
      machine("a100-mesh", "4 A100 SXM, all-to-all NVLink, one AMD socket, 2 x 200 Gb/s", 4, 80,
              CpuVendor::amd, nvlink(mesh, 12, a100_link, false, 2, 25), a100_mesh),
      machine("a100-pcie", "4 A100 PCIe, two Intel sockets, 100 Gb/s", 4, 80, CpuVendor::intel,
              pcie(24, 2, 10, 1, 12.5), a100_pcie),
      machine("a100-perlmutter", "4 A100 SXM, all-to-all NVLink, one AMD socket, 4 x 200 Gb/s Slingshot", 4,
              80, CpuVendor::amd, on(Network::slingshot, nvlink(mesh, 12, a100_link, false, 4, 25)),
              a100_mesh),
      machine("a100-polaris", "4 A100 SXM, all-to-all NVLink, one AMD socket, 2 x 200 Gb/s Slingshot", 4, 80,
              CpuVendor::amd, on(Network::slingshot, nvlink(mesh, 12, a100_link, false, 2, 25)), a100_mesh),
      machine("a800", "8 A800 SXM on NVSwitch (8 NVLinks), 8 x 200 Gb/s", 8, 80, CpuVendor::intel,
              nvlink(on_switch, 8, a100_link, false, 8, 25), {}),
      machine("b200", "8 B200 SXM on NVSwitch, 8 x 400 Gb/s", 8, 100, CpuVendor::intel,
              nvlink(on_switch, 18, b200_link, true, 8, 50), b200_sxm),
      machine("b300", "8 B300 SXM on NVSwitch, 8 x 800 Gb/s", 8, 103, CpuVendor::intel,
              nvlink(on_switch, 18, b200_link, true, 8, 100), single_node(b200_sxm)),
      rack("gb200", "GB200 NVL72: 18 trays of 4 GPUs in one NVLink domain, 4 x 400 Gb/s a tray", 18, 4, 100,
           nvlink(on_switch, 18, b200_link, true, 72, 50)),
      machine("gb200-tray", "4 GB200 on one tray, 4 x 400 Gb/s; other trays only over the network", 4, 100,
              CpuVendor::other, nvlink(on_switch, 18, b200_link, true, 4, 50), {}),
      rack("gb300", "GB300 NVL72: 18 trays of 4 GPUs in one NVLink domain, 4 x 800 Gb/s a tray", 18, 4, 103,
           nvlink(on_switch, 18, b200_link, true, 72, 100)),
      machine("gb300-tray", "4 GB300 on one tray, 4 x 800 Gb/s; other trays only over the network", 4, 103,
              CpuVendor::other, nvlink(on_switch, 18, b200_link, true, 4, 100), {}),
      machine("gh200", "4 GH200, all-to-all NVLink, 4 x 200 Gb/s Slingshot", 4, 90, CpuVendor::other,
              on(Network::slingshot, nvlink(mesh, 18, h100_link, false, 4, 25)), {}),
      machine("h100", "8 H100 SXM on NVSwitch, 8 x 400 Gb/s", 8, 90, CpuVendor::intel,
              nvlink(on_switch, 18, h100_link, true, 8, 50), hopper_layouts),
      machine("h100-pcie", "8 H100 PCIe, two sockets, 400 Gb/s", 8, 90, CpuVendor::intel,
              pcie(48, 2, 22, 1, 50), {}),
      machine("h20", "8 H20 SXM on NVSwitch, 8 x 400 Gb/s (H100's links, fewer SMs)", 8, 90, CpuVendor::intel,
              nvlink(on_switch, 18, h100_link, true, 8, 50), hopper_layouts),
      machine("h200", "8 H200 SXM on NVSwitch, 8 x 400 Gb/s", 8, 90, CpuVendor::intel,
              nvlink(on_switch, 18, h100_link, true, 8, 50), hopper_layouts),
      machine("h800", "8 H800 SXM on NVSwitch (8 NVLinks), 8 x 400 Gb/s", 8, 90, CpuVendor::intel,
              nvlink(on_switch, 8, h100_link, true, 8, 50), {}),
      machine("l40s", "8 L40S on PCIe 4, two sockets, 100 Gb/s", 8, 89, CpuVendor::amd,
              pcie(24, 2, 16, 1, 12.5), {}),
      machine("p4d", "AWS p4d and p4de: 8 A100 SXM on NVSwitch, 4 x 100 Gb/s EFA", 8, 80, CpuVendor::intel,
              stating(75, on(Network::efa, nvlink(on_switch, 12, a100_link, false, 4, 12.5))),
              single_node(a100_sxm)),
      // With the RDMA protocol, the EFA plugin presents the NICs next to one GPU as one, and the plugin's own tuner
      // chooses. It does not use the latency that the plugin reports (aws-ofi-nccl, src/platform-aws.cpp and
      // src/tuner).
      machine("p5", "AWS p5: 8 H100 SXM on NVSwitch, 32 x 100 Gb/s EFA", 8, 90, CpuVendor::amd,
              on(Network::efa, nvlink(on_switch, 18, h100_link, true, 8, 50)), hopper_layouts),
      machine("p5en", "AWS p5en: 8 H200 SXM on NVSwitch, 16 x 200 Gb/s EFA", 8, 90, CpuVendor::intel,
              on(Network::efa, nvlink(on_switch, 18, h100_link, true, 8, 50)), hopper_layouts),
      machine("rtx4090", "8 RTX 4090 on PCIe 4, AMD, no peer access, 100 Gb/s", 8, 89, CpuVendor::amd,
              without_peer_access(pcie(24, 2, 16, 1, 12.5)), rtx4090),
      machine("v100", "8 V100 SXM2, NVLink mesh, 4 x 100 Gb/s", 8, 70, CpuVendor::intel,
              nvlink(mesh, 6, a100_link, false, 4, 12.5), {}),
  };
  return all;
}

// The longest machine name that `name` begins with, followed by a dash.
const Machine* machine_of(std::string_view name) {
  const Machine* best = nullptr;
  for (const Machine& candidate : catalog()) {
    const std::string& word = candidate.cluster.machine;
    const bool matches = name.starts_with(word) && name.size() > word.size() && name[word.size()] == '-';
    if (matches && (best == nullptr || word.size() > best->cluster.machine.size())) {
      best = &candidate;
    }
  }
  return best;
}

// Removes a positive number from the front of `text` and returns it; empty if there is none.
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

// NODESxGPUS. Nodes of a rack with no more GPUs than a tray has are trays, which fill as few racks as possible; other
// nodes are racks.
std::optional<NamedCluster> spread(Cluster& cluster, int nodes, int gpus) {
  const int built_in = cluster.gpus_built_in;
  if (gpus > built_in) {
    return problem(fmt::format("a {} machine has {} GPUs", cluster.machine, built_in),
                   fmt::format("{}-{}x{}", cluster.machine, nodes, built_in));
  }
  cluster.nodes = nodes;
  cluster.gpus_per_node = gpus;
  const int per_host = cluster.gpus_per_host;
  if (per_host == 0 || gpus > per_host) {
    return std::nullopt;
  }
  const int hosts = built_in / per_host;
  const int racks = (nodes - 1) / hosts + 1;
  if (nodes % racks != 0) {
    return problem(fmt::format("{} trays do not spread evenly over {} racks of {}", nodes, racks, hosts),
                   fmt::format("{}-{}x{}", cluster.machine, (nodes / racks + 1) * racks, gpus));
  }
  cluster.nodes = racks;
  cluster.gpus_per_node = nodes / racks * gpus;
  return std::nullopt;
}

// GPUS alone: as few machines as possible.
std::optional<NamedCluster> fill(Cluster& cluster, int gpus) {
  const int built_in = cluster.gpus_built_in;
  if (gpus <= built_in) {
    cluster.gpus_per_node = gpus;
    return std::nullopt;
  }
  if (gpus % built_in != 0) {
    return problem(fmt::format("{} GPUs do not fill machines of {}; write NODESxGPUS", gpus, built_in),
                   fmt::format("{}-{}x{}", cluster.machine, gpus / built_in + 1, built_in));
  }
  // People write "b200-72" for one NVLink rack, which a machine of eight is not part of.
  const Cluster* rack = find_machine("g" + cluster.machine);
  if (rack != nullptr && rack->gpus_per_host > 0 && gpus == rack->gpus_built_in) {
    return problem(
        fmt::format("{} GPUs in one NVLink domain are {}; {} machines of {} are {}-{}x{}", gpus, rack->name,
                    gpus / built_in, built_in, cluster.machine, gpus / built_in, built_in),
        rack->name);
  }
  cluster.nodes = gpus / built_in;
  cluster.gpus_per_node = built_in;
  return std::nullopt;
}

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
  const std::optional<int> first = take_number(rest);
  if (!first) {
    return unknown(name);
  }
  std::optional<NamedCluster> refused;
  if (rest.starts_with('x')) {
    rest.remove_prefix(1);
    const std::optional<int> second = take_number(rest);
    if (!second) {
      return problem(fmt::format("\"{}\" ends before the number of GPUs per node", name));
    }
    refused = spread(cluster, *first, *second);
  } else {
    refused = fill(cluster, *first);
  }
  if (refused) {
    return *refused;
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
      catalog(), [name](const Machine& candidate) { return candidate.cluster.machine == name; });
  return found == catalog().end() ? nullptr : &found->cluster;
}

std::vector<MachineSummary> machines() {
  std::vector<MachineSummary> result;
  for (const Machine& each : catalog()) {
    result.push_back({each.cluster.machine, std::string(each.description), each.cluster.gpus_built_in});
  }
  return result;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Machine& each : catalog()) {
    names.push_back(each.cluster.name);
  }
  return names;
}

}  // namespace rollcall::cost
