#include "tests/latency/measured_tables.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/measured/bench_table.h"
#include "sim/cost/presets.h"

namespace rollcall::latency {

namespace {

using Json = nlohmann::json;

bool says(const Json& json, const char* key, std::string_view word) {
  return json[key].get<std::string>().find(word) != std::string::npos;
}

// Returns the machine that a file's name begins with, in the presets' spelling, with the network that the table names.
std::string machine_of(std::string file, const Json& json) {
  constexpr std::pair<std::string_view, std::string_view> machines[] = {{"a100_mesh", "a100-polaris"},
                                                                        {"a100_pcie", "a100-pcie"},
                                                                        {"a100_sxm", "a100"},
                                                                        {"b200", "b200"},
                                                                        {"b300", "b300"},
                                                                        {"gb200", "gb200"},
                                                                        {"gb300", "gb300"},
                                                                        {"gh200", "gh200"},
                                                                        {"h100", "h100"},
                                                                        {"h200", "h200"},
                                                                        {"h20_", "h20"},
                                                                        {"l40s", "l40s"},
                                                                        {"rtx4090", "rtx4090"}};
  if (file.starts_with("suspect_")) {
    file.erase(0, 8);
  }
  for (const auto& [prefix, machine] : machines) {
    if (file.starts_with(prefix)) {
      const bool is_apart = says(json, "system", "different NVLink domains");
      const bool is_p5 = says(json, "system", "p5.48xlarge");
      return is_p5 ? "p5" : std::string(machine) + (is_apart ? "-tray" : "");
    }
  }
  throw std::runtime_error(file + ": no preset is this machine");
}

Dtype dtype_of(const std::string& name) {
  return name == "double" ? Dtype::float64 : name == "int8" ? Dtype::int8 : Dtype::float32;
}

// Returns what a note says was forced, such as "NCCL_PROTO=LL128".
template <typename Parse>
auto forced(const std::string& note, const std::string& variable, const Parse& parse) {
  const std::size_t at = note.find(variable + "=");
  const std::size_t begin = at == std::string::npos ? at : at + variable.size() + 1;
  return at == std::string::npos ? decltype(parse(""))() : parse(note.substr(begin, note.find(' ', begin)));
}

// Parses text such as "one process, -g 8".
int gpus_per_process(const std::string& launch) {
  const std::size_t at = launch.find("one process") == std::string::npos ? launch.npos : launch.find("-g ");
  int gpus = 1;
  if (at != launch.npos) {
    std::from_chars(launch.data() + at + 3, launch.data() + launch.size(), gpus);
  }
  return gpus;
}

cost::Launch launch_of(const Json& json) {
  return {.gpus_per_process = gpus_per_process(json["launch"]),
          .cuda_graphs = says(json, "launch", "CUDA graphs"),
          .symmetric_memory = says(json, "notes", "SYMMETRIC")};
}

// 2.26 counts as 2.27, and a missing version as the default.
int release_of(const std::string& version) {
  const int release = cost::parse_release(version.substr(0, version.find(' '))).value_or(0);
  return release > 0 ? release : version.starts_with("2.2") ? 22707 : cost::default_release;
}

// By table and bytes.
const Json& torch_estimates() {
  static const Json all = [] {
    std::ifstream in(std::string(ROLLCALL_SOURCE_DIR) + "/tests/data/torch_estimator.json");
    return Json::parse(in)["tables"];
  }();
  return all;
}

std::optional<double> torch_estimate(const std::string& file, std::int64_t bytes) {
  const auto table = torch_estimates().find(file);
  if (table == torch_estimates().end() || !table->contains(std::to_string(bytes))) {
    return std::nullopt;
  }
  return table->at(std::to_string(bytes)).get<double>();
}

MeasuredTable read_table(const std::filesystem::path& path) {
  std::ifstream in(path);
  const Json json = Json::parse(in);
  MeasuredTable table;
  table.file = path.stem().string();
  const std::string machine = machine_of(table.file, json);
  table.name = fmt::format("{}-{}x{}", machine, json["nodes"].get<int>(), json["ranks_per_node"].get<int>());
  const std::string source = json["source"];
  table.system = machine + ", " + source.substr(0, source.find_first_of(",("));
  table.system.erase(table.system.find_last_not_of(' ') + 1);
  const cost::NamedCluster named = cost::find_cluster(table.name);
  if (!named.cluster) {
    throw std::runtime_error(table.file + ": " + named.problem);
  }
  table.cluster = *named.cluster;
  table.cluster.launch = launch_of(json);
  table.cluster.release = release_of(json["nccl_version"]);
  const cost::GroupCost group(
      cost::communicator_of(table.cluster, json["ranks"].get<int>(), table.cluster.nodes));
  cost::Call call;
  call.kind = table.op = measured::op_of_benchmark(json["collective"].get<std::string>()).value();
  call.dtype = dtype_of(json["dtype"]);
  call.same_node = table.cluster.nodes == 1;
  const std::string note = json["notes"];
  call.algorithm = forced(note, "NCCL_ALGO", cost::parse_algorithm);
  call.protocol = forced(note, "NCCL_PROTO", cost::parse_protocol);
  table.is_forced = call.algorithm || call.protocol;
  table.is_ill = table.file.starts_with("suspect_");
  for (const Json& row : json["rows"]) {
    call.bytes = row["bytes"];
    const auto prediction = group.predict(call);
    const double out_of_place = row["time_us"];
    const bool has_both = row.contains("inplace_time_us") && row["inplace_time_us"].is_number();
    const double in_place = has_both ? row["inplace_time_us"].get<double>() : 0;
    const double measured = in_place > 0 ? std::min(in_place, out_of_place) : out_of_place;
    if (prediction && measured > 0) {
      table.by_nccl = prediction->by_nccl;
      const auto algorithm = cost::parse_algorithm(prediction->algorithm);
      table.rows.push_back(
          {{call.kind, group.communicator().ranks, table.cluster.nodes, call.bytes, measured},
           *prediction,
           algorithm ? cost::traits_of(group.communicator(), *algorithm)
                     : cost::network_traits_of(group.communicator()),
           cost::busbw_factor(call.kind, group.communicator().ranks),
           torch_estimate(table.file, call.bytes)});
    }
  }
  return table;
}

}  // namespace

bool counts_for_fit(const MeasuredTable& table) {
  return table.by_nccl && !table.is_forced && !table.is_ill && !table.cluster.launch.symmetric_memory;
}

std::vector<MeasuredTable> measured_tables(const std::string& folder) {
  std::vector<MeasuredTable> tables;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") {
      tables.push_back(read_table(entry.path()));
    }
  }
  std::ranges::sort(tables, {}, &MeasuredTable::file);
  return tables;
}

std::vector<MeasuredTable> all_measured_tables() {
  const std::string data = std::string(ROLLCALL_SOURCE_DIR) + "/tests/data/";
  std::vector<MeasuredTable> tables = measured_tables(data + "nccl_tables");
  for (MeasuredTable& table : measured_tables(data + "nccl_tables_2026")) {
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace rollcall::latency
