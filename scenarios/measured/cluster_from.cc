#include "scenarios/measured/cluster_from.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/source.h"
#include "sim/cost/topology.h"

namespace rollcall::measured {

namespace {

using OrderedJson = nlohmann::ordered_json;

// The meaning of NCCL's numbers: src/include/graph.h, NCCL_TOPO_PATTERN_*, NCCL_TOPO_CPU_*.
enum class Pattern : std::uint8_t { none, balanced_tree, split_tree, tree, ring, nvls, collnet_direct };
constexpr std::array<const char*, 4> tree_patterns{"", "balanced", "split", "plain"};

struct Graph {
  int pattern = 0;
  int channels = 0;
  double intra = 0;
  double inter = 0;
  std::string intra_path;
  std::string inter_path;
  bool same = false;
  double latency = 0;
};

// Everything that the files say; the first answer to each question counts.
struct Machine {
  std::optional<Graph> ring;
  std::optional<Graph> tree;
  std::optional<Graph> nvls;
  int release = 0;
  int ranks = 0;
  int nodes = 0;
  int local_ranks = 0;
  int channels = 0;
  int nvls_channels = -1;
  int capability = 0;
  std::string cpu;
  std::set<std::string> sockets;
  int gpus = 0;
  int nvlinks = 0;         // per GPU
  double total_port = 0;   // GB/s out of one GPU over the fastest links, from a log
  double nvlink_port = 0;  // the same, if that is NVLink
  bool has_switch = false;
  std::map<std::string, double> nics;  // by name: GB/s
  std::string network;

  void take(const Graph& graph) {
    const auto pattern = static_cast<Pattern>(graph.pattern);
    std::optional<Graph>& place = pattern == Pattern::ring ? ring : pattern == Pattern::nvls ? nvls : tree;
    const bool is_known = pattern != Pattern::none && pattern != Pattern::collnet_direct;
    if (is_known && !place && (graph.channels > 0 || pattern == Pattern::nvls)) {
      place = graph;
    }
  }
};

// The text after `key` in the line, up to one of `ends`.
std::optional<std::string_view> after(std::string_view line, std::string_view key,
                                      std::string_view ends = " ,\t") {
  const std::size_t at = line.find(key);
  if (at == line.npos) {
    return std::nullopt;
  }
  line.remove_prefix(at + key.size());
  return line.substr(0, std::min(line.find_first_of(ends), line.size()));
}

template <typename Number>
Number number_or(std::optional<std::string_view> text, Number other) {
  Number value{};
  if (!text) {
    return other;
  }
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  return error == std::errc() ? value : other;
}

std::pair<std::string, std::string> paths_of(std::string_view text) {
  const std::size_t stroke = std::min(text.find('/'), text.size());
  return {std::string(text.substr(0, stroke)), std::string(text.substr(std::min(stroke + 1, text.size())))};
}

// "Pattern 4, crossNic 0, nChannels 12, bw 30.000000/30.000000, type NVL/PIX, sameChannels 1"
std::optional<Graph> graph_in_line(std::string_view line) {
  if (line.find("Pattern ") == line.npos || line.find("nChannels ") == line.npos) {
    return std::nullopt;
  }
  Graph graph;
  graph.pattern = number_or(after(line, "Pattern "), 0);
  graph.channels = number_or(after(line, "nChannels "), 0);
  graph.intra = number_or(after(line, "bw ", "/"), 0.0);
  graph.inter = number_or(after(line.substr(std::min(line.find("bw "), line.size())), "/"), graph.intra);
  std::tie(graph.intra_path, graph.inter_path) = paths_of(after(line, "type ").value_or(""));
  graph.same = number_or(after(line, "sameChannels "), 0) != 0;
  return graph;
}

// "CPU/0-0 (1/1/2)": architecture, vendor, model.
std::string cpu_of(int architecture, int vendor) {
  return architecture != 1 ? "other" : vendor == 1 ? "intel" : vendor == 2 ? "amd" : "other";
}

// Reads one log line, after its "NCCL INFO ".
void read_log_line(std::string_view line, Machine& machine) {
  if (const auto graph = graph_in_line(line)) {
    machine.take(*graph);
    return;
  }
  if (const auto version = after(line, "NCCL version ", " +")) {
    machine.release = machine.release > 0 ? machine.release : cost::parse_release(*version).value_or(0);
  }
  if (line.find(" nNodes ") != line.npos && line.find(" localRanks ") != line.npos) {
    machine.ranks = std::max(machine.ranks, number_or(after(line, "nRanks "), 0));
    machine.nodes = std::max(machine.nodes, number_or(after(line, "nNodes "), 0));
    machine.local_ranks = std::max(machine.local_ranks, number_or(after(line, "localRanks "), 0));
  }
  if (const std::size_t at = line.find(" coll channels"); at != line.npos && at > 0) {
    const std::size_t begin = line.find_last_of(" ]", at - 1);
    machine.channels = std::max(machine.channels,
                                number_or(std::optional(line.substr(begin == line.npos ? 0 : begin + 1)), 0));
    if (const std::size_t nvls = line.find(" nvls channels"); nvls != line.npos) {
      machine.nvls_channels =
          number_or(std::optional(line.substr(line.find_last_of(' ', nvls - 1) + 1)), machine.nvls_channels);
    }
  }
  // "=== System : maxBw 80.0 totalBw 240.0 ==="
  machine.total_port = number_or(after(line, "totalBw "), machine.total_port);
  if (const auto cpu = after(line, "CPU/", " (")) {
    const auto kind = after(line, "(", ")");
    if (kind && kind->find('/') != kind->npos) {
      machine.sockets.insert(std::string(*cpu));
      machine.cpu =
          cpu_of(number_or(kind, 0), number_or(std::optional(kind->substr(kind->find('/') + 1)), 0));
    }
  }
  if (const auto nvlink = after(line, "NVL[", "]")) {
    machine.has_switch = machine.has_switch || line.find("- NVS/") != line.npos;
    machine.nvlink_port = std::max({machine.nvlink_port, machine.total_port, number_or(nvlink, 0.0)});
  }
  // "+ NET[50.0] - NET/0-0 (0/0/1/50.000000)": the last number is the NIC's own.
  if (const auto name = after(line, "- NET/"); name && line.find("NET[") != line.npos) {
    machine.nics[std::string(*name)] = number_or(after(line, "NET[", "]"), 0.0);
  }
  for (const auto& [word, network] :
       {std::pair<std::string_view, const char*>{"NET/IB : Using", "infiniband"},
        {"Using network IB", "infiniband"},
        {"Using network Socket", "sockets"},
        {"Provider is efa", "efa"},
        {"provider is efa", "efa"},
        {"Provider is cxi", "slingshot"},
        {"provider is cxi", "slingshot"}}) {
    if (line.find(word) != line.npos) {
      machine.network = network;
    }
  }
}

bool read_log(std::string_view text, Machine& machine) {
  bool is_log = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (const std::size_t mark = line.find("NCCL INFO "); mark != line.npos) {
      is_log = true;
      read_log_line(line.substr(mark + 10), machine);
    } else if (line.find("NCCL version ") != line.npos) {
      read_log_line(line, machine);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return is_log;
}

// One element of NCCL's XML, whose attributes never contain a '>'.
struct Element {
  std::string_view name;
  std::string_view attributes;

  std::optional<std::string_view> attribute(std::string_view key) const {
    return after(attributes, " " + std::string(key) + "=\"", "\"");
  }
};

template <typename Visitor>
bool for_each_element(std::string_view text, const Visitor& visit) {
  bool any = false;
  while (true) {
    const std::size_t begin = text.find('<');
    const std::size_t end = begin == text.npos ? begin : text.find('>', begin);
    if (end == text.npos) {
      return any;
    }
    std::string_view inside = text.substr(begin + 1, end - begin - 1);
    text.remove_prefix(end + 1);
    if (inside.empty() || inside.front() == '/' || inside.front() == '?' || inside.front() == '!') {
      continue;
    }
    const std::size_t name = std::min(inside.find_first_of(" \t\r\n/"), inside.size());
    visit(Element{inside.substr(0, name), inside.substr(name)});
    any = true;
  }
}

void read_graph_element(const Element& element, Machine& machine) {
  Graph graph;
  graph.pattern = number_or(element.attribute("pattern"), 0);
  graph.channels = number_or(element.attribute("nchannels"), 0);
  graph.intra = number_or(element.attribute("speedintra"), 0.0);
  graph.inter = number_or(element.attribute("speedinter"), 0.0);
  graph.latency = number_or(element.attribute("latencyinter"), 0.0);
  graph.intra_path = std::string(element.attribute("typeintra").value_or(""));
  graph.inter_path = std::string(element.attribute("typeinter").value_or(""));
  graph.same = number_or(element.attribute("samechannels"), 0) != 0;
  const int id = number_or(element.attribute("id"), 0);
  if (id != 2 && id != 4) {  // CollNet's, which a cluster file cannot describe
    machine.take(graph);
  }
}

bool read_xml(std::string_view text, Machine& machine) {
  int links_of_gpu = 0;
  bool is_ours = false;
  for_each_element(text, [&](const Element& element) {
    is_ours = is_ours || element.name == "system" || element.name == "graphs";
    if (element.name == "graph") {
      read_graph_element(element, machine);
    } else if (element.name == "cpu") {
      const std::string_view vendor = element.attribute("vendor").value_or("");
      machine.cpu = vendor == "GenuineIntel" ? "intel" : vendor == "AuthenticAMD" ? "amd" : "other";
      machine.sockets.insert(std::string(element.attribute("numaid").value_or("0")));
    } else if (element.name == "gpu" && element.attribute("sm")) {
      machine.gpus += 1;
      links_of_gpu = 0;
      const int capability = number_or(element.attribute("sm"), 0);
      machine.capability = machine.capability == 0 ? capability : std::min(machine.capability, capability);
    } else if (element.name == "nvlink") {
      links_of_gpu += number_or(element.attribute("count"), 0);
      machine.nvlinks = std::max(machine.nvlinks, links_of_gpu);
      machine.has_switch = machine.has_switch || element.attribute("tclass") == "0x068000";
    } else if (element.name == "net") {
      const std::string name(element.attribute("name").value_or(element.attribute("dev").value_or("")));
      machine.nics[name] = number_or(element.attribute("speed"), 0.0) / 8000;
      if (name.starts_with("rdmap") || name.starts_with("efa")) {
        machine.network = "efa";
      } else if (name.starts_with("cxi")) {
        machine.network = "slingshot";
      }
    }
  });
  return is_ours;
}

// Speeds of one NVLink by capability: src/graph/topo.h.
double nvlink_speed(int capability) { return capability >= 100 ? 40.1 : capability >= 90 ? 20.6 : 20; }

// A log does not name the compute capability. A port's speed is that of a whole number of links of
// one generation.
int capability_of_port(double port) {
  for (const int capability : {100, 90, 80}) {
    const double links = port / nvlink_speed(capability);
    const double rounded = static_cast<int>(links + 0.5);
    if (rounded > 0 && rounded <= 18 && links / rounded > 0.999 && links / rounded < 1.001) {
      return capability;
    }
  }
  return 0;
}

std::string speed_text(double speed) { return fmt::format("{:g}GB/s", speed); }

OrderedJson json_of(const Graph& graph, bool is_tree) {
  OrderedJson json = OrderedJson::object();
  if (is_tree && graph.pattern >= 1 && graph.pattern <= 3) {
    json["pattern"] = tree_patterns[static_cast<std::size_t>(graph.pattern)];
  }
  json["channels"] = graph.channels;
  json["intra_speed"] = speed_text(graph.intra);
  json["inter_speed"] = speed_text(graph.inter > 0 ? graph.inter : graph.intra);
  for (const auto& [key, path] :
       {std::pair{"intra_path", &graph.intra_path}, {"inter_path", &graph.inter_path}}) {
    constexpr std::array<std::string_view, 10> known{"LOC", "NVL", "NVB", "C2C", "PIX",
                                                     "PXB", "P2C", "PXN", "PHB", "SYS"};
    if (std::ranges::find(known, *path) != known.end()) {
      json[key] = *path;
    }
  }
  json["same_channels"] = graph.same;
  if (graph.latency > 0) {
    json["nic_latency"] = fmt::format("{:g}us", graph.latency);
  }
  return json;
}

// Fills in what the files leave open, and reports it.
class Writer {
 public:
  explicit Writer(Machine machine) : machine_(std::move(machine)) {}

  ClusterFile write() {
    // In a rack's NVLink domain, the local ranks are only those of one tray.
    const int gpus = machine_.nodes > 0  ? machine_.ranks / machine_.nodes
                     : machine_.gpus > 0 ? machine_.gpus
                                         : machine_.local_ranks;
    if (gpus == 0) {
      throw std::invalid_argument(
          "the files do not say how many GPUs a node has; add NCCL_TOPO_DUMP_FILE's file, or a log with "
          "NCCL_DEBUG=INFO from the start of the job");
    }
    complete();
    OrderedJson cluster = OrderedJson::object();
    cluster["nodes"] = std::max(1, machine_.nodes);
    cluster["gpus_per_node"] = gpus;
    cluster["compute_capability"] = machine_.capability;
    cluster["cpu"] = machine_.cpu;
    if (machine_.release > 0) {
      cluster["nccl"] = cost::release_name(machine_.release);
    }
    cluster["links"] = links();
    if (machine_.ring) {
      cluster["graphs"] = graphs();
    } else {
      remark(
          "no graphs: channels are estimated from the links; NCCL_GRAPH_DUMP_FILE or "
          "NCCL_DEBUG_SUBSYS=INIT,GRAPH would give them");
    }
    return {cluster.dump(2) + "\n", std::move(remarks_)};
  }

 private:
  void remark(std::string text) { remarks_.push_back(std::move(text)); }

  void complete() {
    if (machine_.capability == 0) {
      machine_.capability = capability_of_port(machine_.nvlink_port);
      if (machine_.capability == 0) {
        machine_.capability = machine_.nvls && machine_.nvls->channels > 0 ? 90 : 80;
      }
      remark(fmt::format("compute capability {} is inferred from the NVLinks; a log does not have it",
                         machine_.capability));
    }
    if (machine_.nvlinks == 0 && machine_.nvlink_port > 0) {
      machine_.nvlinks = static_cast<int>(machine_.nvlink_port / nvlink_speed(machine_.capability) + 0.5);
    }
    if (machine_.cpu.empty()) {
      machine_.cpu = "intel";
      remark("the CPU is not named; intel is assumed");
    }
    if (machine_.nodes > 1 && machine_.nics.empty()) {
      remark("no NIC is named; what crosses nodes is as the graphs have it");
    }
  }

  OrderedJson links() const {
    OrderedJson links = OrderedJson::object();
    links["nvlink"] = machine_.nvlinks == 0 ? "none" : machine_.has_switch ? "switch" : "mesh";
    if (machine_.nvlinks > 0) {
      links["nvlink_count"] = machine_.nvlinks;
      links["nvlink_speed"] = speed_text(nvlink_speed(machine_.capability));
    }
    links["nvls"] = machine_.nvls && machine_.nvls->channels > 0;
    links["sockets"] = std::max<int>(1, static_cast<int>(machine_.sockets.size()));
    if (!machine_.nics.empty()) {
      double slowest = 0;
      for (const auto& [name, speed] : machine_.nics) {
        slowest = slowest == 0 ? speed : std::min(slowest, speed);
      }
      links["nics"] = machine_.nics.size();
      if (slowest > 0) {
        links["nic_speed"] = speed_text(slowest);
      }
      if (machine_.ring && !machine_.ring->inter_path.empty()) {
        links["nic_path"] = machine_.ring->inter_path;
      }
    }
    if (!machine_.network.empty()) {
      links["network"] = machine_.network;
    }
    return links;
  }

  OrderedJson graphs() const {
    OrderedJson graphs = OrderedJson::object();
    graphs["ring"] = json_of(*machine_.ring, false);
    if (machine_.tree) {
      graphs["tree"] = json_of(*machine_.tree, true);
    }
    if (machine_.nvls && machine_.nvls->channels > 0) {
      graphs["nvls"] = json_of(*machine_.nvls, false);
    }
    if (machine_.channels > 0) {
      graphs["channels"] = machine_.channels;
    }
    if (machine_.nvls_channels >= 0) {
      graphs["nvls_channels"] = machine_.nvls_channels;
    }
    return graphs;
  }

  Machine machine_;
  std::vector<std::string> remarks_;
};

}  // namespace

ClusterFile cluster_from(const std::vector<std::string>& paths) {
  Machine machine;
  for (const std::string& path : paths) {
    const scenario::SourceText source = scenario::read_source(path);
    const std::size_t first = source.text().find_first_not_of(" \t\r\n");
    const bool is_xml = first != std::string_view::npos && source.text()[first] == '<';
    if (is_xml ? read_xml(source.text(), machine) : read_log(source.text(), machine)) {
      continue;
    }
    scenario::Diagnostics diagnostics(source);
    diagnostics.error(0, {},
                      "not a file of NCCL's: this takes logs with \"NCCL INFO\" (NCCL_DEBUG=INFO), "
                      "NCCL_TOPO_DUMP_FILE and NCCL_GRAPH_DUMP_FILE");
    diagnostics.throw_if_any();
  }
  return Writer(std::move(machine)).write();
}

}  // namespace rollcall::measured
