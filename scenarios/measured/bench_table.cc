#include "scenarios/measured/bench_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>

#include <nlohmann/json.hpp>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/source.h"
#include "sim/base/parse_number.h"
#include "sim/cost/topology.h"

namespace rollcall::measured {

namespace {

using Json = nlohmann::json;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  std::size_t at = 0;
  while ((at = line.find_first_not_of(" \t\r", at)) != line.npos) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

// The operation whose program's name is in the text: "./build/all_reduce_perf -b 8".
std::optional<OpKind> op_named_in(std::string_view text) {
  const std::size_t end = text.find("_perf");
  if (end == text.npos) {
    return std::nullopt;
  }
  const std::size_t begin = text.find_last_of(" \t/\"'", end);
  return op_of_benchmark(
      text.substr(begin == text.npos ? 0 : begin + 1, end - (begin == text.npos ? 0 : begin + 1)));
}

// If nothing names the operation, the ratio of the two bandwidths identifies it, together with whether it
// reduces.
std::optional<OpKind> op_of_factor(double factor, bool reduces, int ranks) {
  if (factor <= 0) {
    return std::nullopt;
  }
  const double others = ranks > 1 ? (ranks - 1.0) / ranks : 0;
  const auto is = [factor](double expected) {
    return expected > 0 && std::abs(factor / expected - 1) < 0.02;
  };
  if (reduces) {
    return is(2 * others) || (ranks == 0 && factor > 1.01) ? std::optional(OpKind::all_reduce)
           : is(others)                                    ? std::optional(OpKind::reduce_scatter)
                                                           : std::nullopt;
  }
  return is(others) ? std::optional(OpKind::all_gather) : std::nullopt;
}

// Reads the text output of nccl-tests and of PARAM, line by line.
class TextReader {
 public:
  explicit TextReader(const scenario::SourceText& source) : source_(source) {}

  std::vector<BenchTable> read() {
    std::string_view text = source_.text();
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      read_line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    for (BenchTable& table : tables_) {
      table.ranks = static_cast<int>(ranks_.size());
      table.nodes = static_cast<int>(hosts_.size());
    }
    return std::move(tables_);
  }

 private:
  void read_line(std::string_view line) {
    // Skips a launcher's prefix "[1,0]<stdout>:".
    if (const std::size_t mark = line.find(">:"); line.starts_with("[") && mark != line.npos) {
      line.remove_prefix(mark + 2);
    }
    const auto words = words_of(line);
    if (words.empty()) {
      return;
    }
    if (words.front().starts_with("COMMS-RES-")) {
      read_param_row(words);
    } else if (words.front().starts_with("#") || !parse_number<std::int64_t>(words.front())) {
      read_header(line, words);
    } else {
      read_row(words);
    }
  }

  void read_header(std::string_view line, const std::vector<std::string_view>& words) {
    if (const auto named = op_named_in(line)) {
      op_ = named;
    }
    // "#  Rank  3 Group  0 Pid   2001 on   node1 device  3 [0x4e] NVIDIA H100"
    const auto rank = std::ranges::find(words, "Rank");
    const auto on = std::ranges::find(words, "on");
    if (rank != words.end() && rank + 1 < words.end() && on != words.end() && on + 1 < words.end()) {
      ranks_.insert(std::string(*(rank + 1)));
      hosts_.insert(std::string(*(on + 1)));
    }
    if (words.size() > 4 && std::ranges::find(words, "size") != words.end() &&
        std::ranges::find(words, "time") != words.end()) {
      columns_.assign(words.begin() + (words.front() == "#" ? 1 : 0), words.end());
    }
  }

  // size count type [redop] [root] time algbw busbw #wrong time algbw busbw #wrong
  void read_row(const std::vector<std::string_view>& words) {
    const auto bytes = parse_number<std::int64_t>(words.front());
    if (!bytes || *bytes <= 0 || words.size() < 6) {
      return;
    }
    double best = 0;
    double factor = 0;
    bool reduces = false;
    for (std::size_t i = 0; i < std::min(words.size(), columns_.size()); ++i) {
      const std::string_view column = columns_[i];
      if (column == "redop") {
        reduces = words[i] != "none";
      } else if (column == "time") {
        const auto time = parse_number<double>(words[i]);
        if (time && *time > 0) {
          best = best == 0 ? *time : std::min(best, *time);
        }
      } else if (column == "busbw" && factor == 0 && i > 0) {
        const double algbw = parse_number<double>(words[i - 1]).value_or(0);
        factor = algbw >= 1 ? parse_number<double>(words[i]).value_or(0) / algbw : 0;
      }
    }
    if (best <= 0) {
      return;
    }
    if (const auto op = op_ ? op_ : op_of_factor(factor, reduces, static_cast<int>(ranks_.size()))) {
      add(*op, {*bytes, best});
    }
  }

  // COMMS-RES-all_reduce-float32 size elements p50 p75 p95 min max algbw busbw total
  void read_param_row(const std::vector<std::string_view>& words) {
    std::string_view name = words.front().substr(10);
    name = name.substr(0, name.find('-'));
    const auto op = op_of_benchmark(name);
    const auto bytes = words.size() > 3 ? parse_number<std::int64_t>(words[1]) : std::nullopt;
    const auto time = words.size() > 3 ? parse_number<double>(words[3]) : std::nullopt;
    if (op && bytes && time && *bytes > 0 && *time > 0) {
      add(*op, {*bytes, *time});
    }
  }

  void add(OpKind op, const BenchRow& row) {
    const auto found = std::ranges::find(tables_, op, &BenchTable::op);
    BenchTable& table = found != tables_.end() ? *found : tables_.emplace_back();
    table.file = source_.name();
    table.op = op;
    table.rows.push_back(row);
  }

  const scenario::SourceText& source_;
  std::optional<OpKind> op_;
  std::vector<std::string> columns_{"size",  "count",  "type", "redop", "root",  "time",  "algbw",
                                    "busbw", "#wrong", "time", "algbw", "busbw", "#wrong"};
  std::set<std::string> ranks_;
  std::set<std::string> hosts_;
  std::vector<BenchTable> tables_;
};

double number_in(const Json& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (object.is_object() && object.contains(key) && object[key].is_number()) {
      return object[key].get<double>();
    }
  }
  return 0;
}

std::string text_in(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_string()
             ? object[key].get<std::string>()
             : "";
}

// Output of nccl-tests -J has "results" with "out_of_place" and "in_place"; a published table has "rows" with
// "time_us".
std::optional<BenchTable> read_json_table(const std::string& name, const Json& json) {
  BenchTable table{.file = name, .rows = {}};
  std::optional<OpKind> op = op_of_benchmark(text_in(json, "collective"));
  if (json.contains("args") && json["args"].is_array()) {
    for (const Json& argument : json["args"]) {
      op = op || !argument.is_string() ? op : op_named_in(argument.get<std::string>());
    }
  }
  table.ranks = static_cast<int>(number_in(json, {"ranks"}));
  table.nodes = static_cast<int>(number_in(json, {"nodes"}));
  const Json& config = json.contains("config") ? json["config"] : json;
  const Json& devices = config.contains("devices") ? config["devices"]
                        : json.contains("devices") ? json["devices"]
                                                   : Json();
  if (devices.is_array() && !devices.empty()) {
    std::set<std::string> hosts;
    for (const Json& device : devices) {
      hosts.insert(text_in(device, "hostname"));
    }
    table.ranks = static_cast<int>(devices.size());
    table.nodes = static_cast<int>(hosts.size());
  }
  const char* key = json.contains("results") ? "results" : "rows";
  if (!json.contains(key) || !json[key].is_array()) {
    return std::nullopt;
  }
  for (const Json& each : json[key]) {
    const double bytes = number_in(each, {"size", "bytes"});
    double best = 0;
    for (const double time : {number_in(each, {"time_us"}), number_in(each, {"inplace_time_us"}),
                              number_in(each.value("out_of_place", Json()), {"time"}),
                              number_in(each.value("in_place", Json()), {"time"})}) {
      best = time <= 0 ? best : best == 0 ? time : std::min(best, time);
    }
    if (bytes >= 1 && bytes < 9e18 && best > 0) {
      table.rows.push_back({static_cast<std::int64_t>(bytes), best});
    }
  }
  if (!op || table.rows.empty()) {
    return std::nullopt;
  }
  table.op = *op;
  return table;
}

// The tables of one file, at least one.
std::vector<BenchTable> tables_in(const std::string& path) {
  const scenario::SourceText source = scenario::read_source(path);
  std::vector<BenchTable> tables;
  const std::size_t first = source.text().find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && source.text()[first] == '{') {
    const Json json = Json::parse(source.text(), nullptr, false);
    const bool has_several = json.is_object() && json.contains("tables") && json["tables"].is_array();
    for (const Json& each : has_several ? json["tables"] : Json::array({json})) {
      if (const auto table = each.is_object() ? read_json_table(source.name(), each) : std::nullopt) {
        tables.push_back(*table);
      }
    }
  } else {
    tables = TextReader(source).read();
  }
  if (tables.empty()) {
    scenario::Diagnostics diagnostics(source);
    diagnostics.error(
        0, {},
        "no rows of a benchmark: this takes the output of nccl-tests (text, or JSON of -J) and of "
        "PARAM's comms benchmark, with a line that names the collective");
    diagnostics.throw_if_any();
  }
  return tables;
}

}  // namespace

std::optional<OpKind> op_of_benchmark(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, OpKind>, 6> others{
      {{"alltoall", OpKind::all_to_all},
       {"alltoallv", OpKind::all_to_all},
       {"all_to_allv", OpKind::all_to_all},
       {"sendrecv", OpKind::send},
       {"all_gather_base", OpKind::all_gather},
       {"reduce_scatter_base", OpKind::reduce_scatter}}};
  const auto found = std::ranges::find(others, name, &std::pair<std::string_view, OpKind>::first);
  if (found != others.end()) {
    return found->second;
  }
  const auto kind = parse_op_kind(std::string(name));
  return kind && has_tensor(*kind) ? kind : std::nullopt;
}

std::vector<BenchTable> read_bench_tables(const std::vector<std::string>& paths) {
  std::vector<BenchTable> tables;
  for (const std::string& path : paths) {
    std::ranges::move(tables_in(path), std::back_inserter(tables));
  }
  return tables;
}

std::vector<cost::Measurement> measurements_of(const std::vector<BenchTable>& tables,
                                               const cost::Cluster& cluster) {
  std::vector<cost::Measurement> rows;
  for (const BenchTable& table : tables) {
    const int ranks = table.ranks > 1 ? table.ranks : cluster.nodes * cluster.gpus_per_node;
    // A host is a node, unless several hosts form one NVLink domain.
    const int hosts = table.nodes > 0 ? table.nodes : cluster.nodes;
    const int per_node = std::max(1, cluster.gpus_per_node);
    const int nodes = cluster.gpus_per_host > 0 ? std::max(1, (ranks + per_node - 1) / per_node) : hosts;
    for (const BenchRow& row : table.rows) {
      rows.push_back({table.op, ranks, std::min(nodes, ranks), row.bytes, row.time});
    }
  }
  return rows;
}

}  // namespace rollcall::measured
