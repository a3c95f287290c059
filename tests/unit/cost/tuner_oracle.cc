#include "tests/unit/cost/tuner_oracle.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/catch.h"

namespace rollcall::cost::test {

namespace {

using Json = nlohmann::json;

PathType path_named(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(PathType::sys); ++i) {
    if (to_string(static_cast<PathType>(i)) == name) {
      return static_cast<PathType>(i);
    }
  }
  FAIL("unknown path " << name);
  return PathType::sys;
}

ChannelGraph graph_of(const Json& json) {
  using Pattern = ChannelGraph::Pattern;
  ChannelGraph graph;
  const int pattern = json["pattern"];
  graph.pattern = pattern == 1   ? Pattern::balanced_tree
                  : pattern == 2 ? Pattern::split_tree
                  : pattern == 3 ? Pattern::tree
                  : pattern == 4 ? Pattern::ring
                                 : Pattern::nvls;
  graph.channels = json["n_channels"];
  graph.intra_speed = json["bw_intra"];
  graph.inter_speed = json["bw_inter"];
  graph.intra_path = path_named(json["type_intra"]);
  graph.inter_path = path_named(json["type_inter"]);
  graph.same_channels = json["same_channels"] != 0;
  graph.nic_latency = json["latency_inter"];
  return graph;
}

}  // namespace

std::vector<std::string> oracle_files() {
  std::vector<std::string> files;
  const std::string folder = std::string(ROLLCALL_SOURCE_DIR) + "/tests/data/nccl_tuner";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.find("__n") != std::string::npos) {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

Json read_json(const std::string& path) {
  std::ifstream in(path);
  REQUIRE(in);
  return Json::parse(in);
}

Communicator communicator_of_file(const Json& file) {
  Communicator communicator;
  communicator.ranks = file["n_ranks"];
  communicator.nodes = file["n_nodes"];
  communicator.compute_capability = file["min_compcap"];
  const int vendor = file["cpu_vendor"];
  communicator.cpu = vendor == 1 ? CpuVendor::intel : vendor == 2 ? CpuVendor::amd : CpuVendor::other;
  communicator.graphs.tree = graph_of(file["graphs"]["tree"]);
  communicator.graphs.ring = graph_of(file["graphs"]["ring"]);
  communicator.graphs.nvls = graph_of(file["graphs"]["nvls"]);
  communicator.graphs.channels = file["n_channels"];
  communicator.graphs.nvls_channels = file["nvls_channels"];
  return communicator;
}

Function function_named(const std::string& name) {
  for (std::size_t i = 0; i < function_count; ++i) {
    if (to_string(static_cast<Function>(i)) == name) {
      return static_cast<Function>(i);
    }
  }
  FAIL("unknown function " << name);
  return Function::all_reduce;
}

Pair pair_named(const std::string& name) {
  const std::size_t slash = name.find('/');
  return {parse_algorithm(name.substr(0, slash)).value(), parse_protocol(name.substr(slash + 1)).value()};
}

}  // namespace rollcall::cost::test
