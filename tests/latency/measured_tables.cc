#include "tests/latency/measured_tables.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/cost/presets.h"

namespace rollcall::latency {

namespace {

using Json = nlohmann::json;

// The machine that a file's name begins with, in the presets' spelling.
std::string machine_of(const std::string& file) {
  constexpr std::pair<std::string_view, std::string_view> machines[] = {
      {"a100_mesh", "a100-mesh"}, {"a100_pcie", "a100-pcie"}, {"a100_sxm", "a100"}, {"b200", "b200"},
      {"h100", "h100"},           {"h200", "h200"},           {"h20_", "h20"},      {"l40s", "l40s"},
      {"rtx4090", "rtx4090"}};
  for (const auto& [prefix, machine] : machines) {
    if (file.starts_with(prefix)) {
      return std::string(machine);
    }
  }
  throw std::runtime_error(file + ": no preset is this machine");
}

// nccl-tests' names.
OpKind op_of(const std::string& collective) {
  if (collective == "alltoall") {
    return OpKind::all_to_all;
  }
  if (collective == "sendrecv") {
    return OpKind::send;
  }
  return parse_op_kind(collective).value();
}

// "NCCL_PROTO=LL128": what a note says was forced.
template <typename Parse>
auto forced(const std::string& note, const std::string& variable, const Parse& parse) {
  const std::size_t at = note.find(variable + "=");
  const std::size_t begin = at == std::string::npos ? at : at + variable.size() + 1;
  return at == std::string::npos ? decltype(parse(""))() : parse(note.substr(begin, note.find(' ', begin)));
}

MeasuredTable read_table(const std::filesystem::path& path) {
  std::ifstream in(path);
  const Json json = Json::parse(in);
  MeasuredTable table;
  table.file = path.stem().string();
  const std::string machine = machine_of(table.file);
  table.cluster =
      fmt::format("{}-{}x{}", machine, json["nodes"].get<int>(), json["ranks_per_node"].get<int>());
  const std::string source = json["source"];
  table.system = machine + ", " + source.substr(0, source.find_first_of(",("));
  table.system.erase(table.system.find_last_not_of(' ') + 1);
  const cost::NamedCluster named = cost::find_cluster(table.cluster);
  if (!named.cluster) {
    throw std::runtime_error(table.file + ": " + named.problem);
  }
  const cost::GroupCost group(
      cost::communicator_of(*named.cluster, json["ranks"].get<int>(), json["nodes"].get<int>()));
  cost::Call call;
  call.kind = table.op = op_of(json["collective"]);
  call.dtype = json["dtype"] == "double" ? Dtype::float64 : Dtype::float32;
  call.same_node = json["nodes"] == 1;
  const std::string note = json["notes"];
  call.algorithm = forced(note, "NCCL_ALGO", cost::parse_algorithm);
  call.protocol = forced(note, "NCCL_PROTO", cost::parse_protocol);
  table.is_forced = call.algorithm || call.protocol;
  table.compute_capability = named.cluster->compute_capability;
  table.has_nvlink = named.cluster->links.nvlink != cost::Links::NvLink::none;
  for (const Json& row : json["rows"]) {
    call.bytes = row["bytes"];
    const auto prediction = group.predict(call);
    const double out_of_place = row["time_us"];
    const double in_place = row["inplace_time_us"].is_number() ? row["inplace_time_us"].get<double>() : 0;
    const double measured = in_place > 0 ? std::min(in_place, out_of_place) : out_of_place;
    if (prediction && measured > 0) {
      table.by_nccl = prediction->by_nccl;
      table.rows.push_back({call.bytes, measured, prediction->time});
    }
  }
  return table;
}

}  // namespace

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

}  // namespace rollcall::latency
