#include "scenarios/format/cluster_reader.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/json_reader.h"
#include "scenarios/json/schema_check.h"
#include "scenarios/json/source.h"
#include "scenarios/json/suggest.h"
#include "scenarios/program/units.h"

namespace rollcall::scenario {
namespace {

using cost::ChannelGraph;
using cost::Links;
using cost::PathType;

constexpr double giga = 1e9;

// The word has passed the schema's enum; its position is the enumerator.
template <std::size_t count>
std::size_t position(std::string_view word, const std::array<std::string_view, count>& words) {
  return static_cast<std::size_t>(std::ranges::find(words, word) - words.begin());
}

PathType path_named(std::string_view name) {
  constexpr std::array<std::string_view, 10> names{"LOC", "NVL", "NVB", "C2C", "PIX",
                                                   "PXB", "P2C", "PXN", "PHB", "SYS"};
  return static_cast<PathType>(position(name, names));
}

// Reads one object that describes a cluster, on top of the values of its preset.
class ClusterReader {
 public:
  ClusterReader(const Json& object, Diagnostics& diagnostics) : object_(object), diagnostics_(diagnostics) {}

  ClusterSetting read() {
    ClusterSetting setting;
    cost::Cluster cluster;
    cluster.name = "custom";
    const bool has_preset = read_preset(cluster);
    setting.nodes = object_.find("nodes");
    object_.read("nodes", cluster.nodes);
    read_size(cluster, has_preset);
    setting.gpus_per_node = cluster.gpus_per_node;
    const bool has_machine = read_machine(cluster);
    read_release(cluster);
    read_launch(cluster.launch);
    read_measured(cluster);
    object_.read("residuals", setting.residuals);
    if (has_preset || has_machine) {
      setting.cluster = std::move(cluster);
    }
    return setting;
  }

 private:
  void error(const Json& at, std::string message, std::string_view suggestion = {}) {
    diagnostics_.error(at, std::move(message), suggestion);
  }

  bool read_preset(cost::Cluster& cluster) {
    const auto preset = object_.find("preset");
    if (!preset) {
      return false;
    }
    // A machine's name is enough if the object says how many there are.
    const cost::Cluster* machine = cost::find_machine(preset->text());
    if (machine != nullptr && (object_.find("nodes") || object_.find("gpus_per_node"))) {
      cluster = *machine;
      cluster.name = fmt::format("custom ({})", preset->text());
      return true;
    }
    const cost::NamedCluster named = cost::find_cluster(preset->text());
    if (!named.cluster) {
      error(*preset, named.problem, preset_suggestion(named, preset->text()));
      return false;
    }
    cluster = *named.cluster;
    cluster.name = fmt::format("custom ({})", preset->text());
    return true;
  }

  void read_size(cost::Cluster& cluster, bool has_preset) {
    const auto per_node = object_.find("gpus_per_node");
    if (per_node) {
      cluster.gpus_per_node = static_cast<int>(per_node->integer());
      if (has_preset && cluster.gpus_per_node > cluster.gpus_built_in) {
        error(*per_node, fmt::format("a {} machine has {} GPUs", cluster.machine, cluster.gpus_built_in));
      }
    } else if (!has_preset && !object_.find("preset")) {
      error(object_, "\"gpus_per_node\" is missing");
    }
    if (!has_preset) {
      cluster.gpus_built_in = cluster.gpus_per_node;
    }
  }

  // True if the object describes the machines.
  bool read_machine(cost::Cluster& cluster) {
    const auto links = object_.find("links");
    const auto graphs = object_.find("graphs");
    const auto cpu = object_.find("cpu");
    object_.read("compute_capability", cluster.compute_capability);
    if (cpu) {
      constexpr std::array<std::string_view, 3> vendors{"intel", "amd", "other"};
      cluster.cpu = static_cast<cost::CpuVendor>(position(cpu->text(), vendors));
    }
    if (links) {
      const Links before = cluster.links;
      read_links(*links, cluster.links);
      drop_outdated(before, cluster);
    }
    if (graphs) {
      read_graphs(*graphs, cluster);
    }
    return links || graphs || cpu || object_.find("compute_capability");
  }

  void read_release(cost::Cluster& cluster) {
    if (const auto nccl = object_.find("nccl")) {
      if (const auto release = cost::parse_release(nccl->text())) {
        cluster.release = *release;
      } else {
        error(*nccl, fmt::format("unknown release of NCCL \"{}\"; write one from 2.27 to {}", nccl->text(),
                                 cost::release_name(cost::newest_release)));
      }
    }
  }

  void read_launch(cost::Launch& launch) {
    if (const auto given = object_.find("launch")) {
      given->read("gpus_per_process", launch.gpus_per_process);
      given->read("cuda_graphs", launch.cuda_graphs);
      given->read("symmetric_memory", launch.symmetric_memory);
    }
  }

  void read_measured(cost::Cluster& cluster) {
    const auto measured = object_.find("measured");
    if (!measured) {
      return;
    }
    std::vector<cost::Measurement> rows;
    for (const Json& each : measured->children()) {
      rows.push_back(read_row(each, cluster));
    }
    cluster.corrections = cost::corrections_of(cluster, rows);
  }

  cost::Measurement read_row(const Json& each, const cost::Cluster& cluster) {
    cost::Measurement row{.ranks = cluster.nodes * cluster.gpus_per_node, .nodes = cluster.nodes};
    const Json op = *each.find("op");
    if (const auto kind = parse_op_kind(op.text()); kind && has_tensor(*kind)) {
      row.kind = *kind;
    } else {
      error(op, fmt::format("unknown operation \"{}\"", op.text()));
    }
    double bytes = 0;
    const Json size = *each.find("bytes");
    read_quantity(size, parse_bytes(size.text()), true, 1, bytes);
    row.bytes = static_cast<std::int64_t>(bytes);
    const Json time = *each.find("time");
    read_quantity(time, parse_duration(time.text()), true, static_cast<double>(microsecond), row.time);
    each.read("ranks", row.ranks);
    each.read("nodes", row.nodes);
    if (row.nodes > row.ranks) {
      error(each, "every node holds a rank: \"nodes\" is more than \"ranks\"");
    }
    return row;
  }

  // The preset's graphs are valid only for the preset's links.
  static void drop_outdated(const Links& before, cost::Cluster& cluster) {
    Links same_inside = cluster.links;
    same_inside.nics = before.nics;
    same_inside.nic_speed = before.nic_speed;
    same_inside.nic_path = before.nic_path;
    same_inside.nic_latency = before.nic_latency;
    same_inside.sharp = before.sharp;
    same_inside.network = before.network;
    Links same_outside = before;
    same_outside.sharp = cluster.links.sharp;  // adds to the search's results, but does not change them
    same_outside.network = cluster.links.network;
    if (!(same_inside == before)) {
      cluster.layouts.clear();
    } else if (!(cluster.links == same_outside)) {
      std::erase_if(cluster.layouts, [](const cost::Layout& layout) { return layout.several_nodes; });
    }
  }

  void read_links(const Json& links, Links& into) {
    if (const auto kind = links.find("nvlink")) {
      constexpr std::array<std::string_view, 3> kinds{"none", "mesh", "switch"};
      into.nvlink = static_cast<Links::NvLink>(position(kind->text(), kinds));
    }
    links.read("nvlink_count", into.nvlink_count);
    read_speed(links, "nvlink_speed", into.nvlink_speed);
    links.read("nvls", into.nvls);
    read_speed(links, "pcie_speed", into.pcie_speed);
    links.read("sockets", into.sockets);
    read_speed(links, "socket_speed", into.socket_speed);
    links.read("nics", into.nics);
    read_speed(links, "nic_speed", into.nic_speed);
    read_path(links, "nic_path", into.nic_path);
    read_latency(links, "nic_latency", into.nic_latency);
    links.read("sharp", into.sharp);
    if (const auto network = links.find("network")) {
      constexpr std::array<std::string_view, cost::network_count> networks{"infiniband", "efa", "slingshot",
                                                                           "sockets"};
      into.network = static_cast<cost::Network>(position(network->text(), networks));
    }
    if (into.nvlink != Links::NvLink::none && (into.nvlink_count <= 0 || into.nvlink_speed <= 0)) {
      error(links, "NVLink needs \"nvlink_count\" and \"nvlink_speed\"");
    }
  }

  // Given graphs apply to the cluster as described, whatever was known before.
  void read_graphs(const Json& graphs, cost::Cluster& cluster) {
    cost::Graphs known;
    known.tree.pattern = ChannelGraph::Pattern::balanced_tree;
    known.nvls.pattern = ChannelGraph::Pattern::nvls;
    for (const auto& [name, graph] :
         {std::pair{"tree", &known.tree}, {"ring", &known.ring}, {"nvls", &known.nvls}}) {
      if (const auto given = graphs.find(name)) {
        read_graph(*given, *graph);
      }
    }
    if (known.ring.channels == 0) {
      error(graphs, "\"ring\" is missing: NCCL always has one");
    }
    known.channels = std::min(64, 2 * known.ring.channels);
    known.nvls_channels = known.nvls.channels > 0 ? 16 : 0;
    graphs.read("channels", known.channels);
    graphs.read("nvls_channels", known.nvls_channels);
    for (const bool several_nodes : {false, true}) {
      std::erase_if(cluster.layouts, [&](const cost::Layout& layout) {
        return layout.gpus_per_node == cluster.gpus_per_node && layout.several_nodes == several_nodes;
      });
      cluster.layouts.push_back({cluster.gpus_per_node, several_nodes, known});
    }
  }

  void read_graph(const Json& value, ChannelGraph& graph) {
    if (const auto pattern = value.find("pattern")) {
      constexpr std::array<std::string_view, 3> patterns{"balanced", "split", "plain"};
      graph.pattern = static_cast<ChannelGraph::Pattern>(position(pattern->text(), patterns));
    }
    value.read("channels", graph.channels);
    read_speed(value, "intra_speed", graph.intra_speed);
    graph.inter_speed = graph.intra_speed;
    read_speed(value, "inter_speed", graph.inter_speed);
    read_path(value, "intra_path", graph.intra_path);
    read_path(value, "inter_path", graph.inter_path);
    value.read("same_channels", graph.same_channels);
    read_latency(value, "nic_latency", graph.nic_latency);
  }

  static void read_path(const Json& object, std::string_view key, PathType& into) {
    if (const auto value = object.find(key)) {
      into = path_named(value->text());
    }
  }
  void read_speed(const Json& object, std::string_view key, double& into) {
    if (const auto value = object.find(key)) {
      read_quantity(*value, parse_bandwidth(value->text()), true, giga, into);
    }
  }
  void read_latency(const Json& object, std::string_view key, double& into) {
    if (const auto value = object.find(key)) {
      read_quantity(*value, parse_duration(value->text()), false, static_cast<double>(microsecond), into);
    }
  }
  void read_quantity(const Json& at, const Quantity& parsed, bool is_speed, double unit, double& into) {
    const std::optional<std::int64_t> read = diagnostics_.value_of(at, parsed);
    if (read == 0 && is_speed) {
      error(at, "must be more than 0");
    }
    into = read ? static_cast<double>(*read) / unit : into;
  }

  Json object_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::string preset_suggestion(const cost::NamedCluster& named, std::string_view name) {
  return named.suggestion.empty() ? std::string(suggest_from(name, cost::preset_names())) : named.suggestion;
}

std::optional<ClusterSetting> read_cluster(const Json& value, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.count();
  ClusterSetting setting;
  if (value.is(JsonType::string)) {
    cost::NamedCluster named = cost::find_cluster(value.text());
    if (!named.cluster) {
      diagnostics.error(value, named.problem, preset_suggestion(named, value.text()));
      return std::nullopt;
    }
    setting.gpus_per_node = named.cluster->gpus_per_node;
    setting.cluster = std::move(named.cluster);
  } else {
    setting = ClusterReader(value, diagnostics).read();
  }
  return diagnostics.count() == before ? std::optional(std::move(setting)) : std::nullopt;
}

cost::Cluster load_cluster(const std::string& path) {
  const SourceText source = read_source(path);
  const JsonTree tree = read_json(source);
  Diagnostics diagnostics(source);
  check_cluster_schema(tree.root(), diagnostics);
  diagnostics.throw_if_any();
  std::optional<ClusterSetting> setting = read_cluster(tree.root(), diagnostics);
  if (setting && !setting->cluster) {
    diagnostics.error(tree.root(),
                      "the machines are not described: give \"preset\", \"links\" or \"graphs\"");
  }
  diagnostics.throw_if_any();
  return std::move(*setting->cluster);
}

}  // namespace rollcall::scenario
