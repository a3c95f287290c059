#include "sim/cost/presets.h"

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/unit/cost/tuner_oracle.h"

namespace rollcall::cost::presets_test {

namespace {

Cluster cluster(std::string_view name) { return find_cluster(name).cluster.value(); }

Communicator whole(const Cluster& cluster) {
  return communicator_of(cluster, cluster.nodes * cluster.gpus_per_node, cluster.nodes);
}

// Maps "h100_sxm2of8_cx7_400g_intel_spr__n4.json" to "h100-4x2". Empty if no preset is this machine.
std::string preset_of_file(const std::string& path, const nlohmann::json& file) {
  const std::string name = path.substr(path.find_last_of('/') + 1);
  const std::pair<const char*, const char*> machines[] = {
      {"a100_mesh4", "a100-mesh"}, {"a100_pcie4_intel_nic100g", "a100-pcie"},
      {"a100_sxm", "a100"},        {"b200_sxm", "b200"},
      {"h100_sxm", "h100"},        {"h200_sxm", "h200"},
      {"rtx4090", "rtx4090"}};
  for (const auto& [prefix, machine] : machines) {
    if (name.starts_with(prefix)) {
      return std::string(machine) + "-" + std::to_string(file["n_nodes"].get<int>()) + "x" +
             std::to_string(file["ppn"].get<int>());
    }
  }
  return {};
}

}  // namespace

TEST_CASE("the presets have the graphs that NCCL's search finds on such machines", "[cost]") {
  int compared = 0;
  for (const std::string& path : test::oracle_files()) {
    const nlohmann::json file = test::read_json(path);
    const std::string name = preset_of_file(path, file);
    if (name.empty()) {
      continue;
    }
    CAPTURE(path, name);
    const Communicator preset = whole(cluster(name));
    if (!preset.graphs_are_known) {
      continue;  // an estimate, and marked as one
    }
    const Communicator found = test::communicator_of_file(file);
    CHECK(preset.compute_capability == found.compute_capability);
    CHECK(preset.ranks == found.ranks);
    CHECK(preset.graphs.tree == found.graphs.tree);
    CHECK(preset.graphs.ring == found.graphs.ring);
    CHECK(preset.graphs.nvls == found.graphs.nvls);
    CHECK(preset.graphs.channels == found.graphs.channels);
    CHECK(preset.graphs.nvls_channels == found.graphs.nvls_channels);
    ++compared;
  }
  CHECK(compared >= 30);
}

TEST_CASE("a cluster's name says machine, nodes, GPUs and the speed of the NICs", "[cost]") {
  CHECK(cluster("h100-8").nodes == 1);
  CHECK(cluster("h100-4").gpus_per_node == 4);
  CHECK(cluster("h100-16").nodes == 2);
  CHECK(cluster("h100-16").gpus_per_node == 8);
  CHECK(cluster("h200-16x8").nodes == 16);
  CHECK(cluster("a100-mesh-8x4").nodes == 8);
  CHECK(cluster("a100-mesh-8x4").machine == "a100-mesh");
  CHECK(cluster("a100-2x8").machine == "a100");
  CHECK(cluster("h100-2x8@200G").links.nic_speed == 25);
  CHECK(whole(cluster("h100-2x8@400G")).graphs_are_known);
  CHECK_FALSE(whole(cluster("h100-2x8@200G")).graphs_are_known);
}

TEST_CASE("a name that means no cluster is refused with what was meant", "[cost]") {
  CHECK_THAT(find_cluster("h10O-8").problem, Contains("unknown cluster \"h10O-8\""));
  CHECK_THAT(find_cluster("h10O-8").problem, Contains("h100-8"));
  CHECK(find_cluster("h100").suggestion == "h100-8");
  CHECK(find_cluster("h100-12").suggestion == "h100-2x8");
  CHECK_THAT(find_cluster("h100-2x9").problem, Contains("has 8 GPUs"));
  CHECK_FALSE(find_cluster("h100-8@200").cluster.has_value());
  CHECK_FALSE(find_cluster("h100-8@").cluster.has_value());
  CHECK_FALSE(find_cluster("h100-8@fastG").cluster.has_value());
  CHECK_FALSE(find_cluster("h100-").cluster.has_value());
  CHECK_FALSE(find_cluster("h100-0").cluster.has_value());
  CHECK_FALSE(find_cluster("h100--8").cluster.has_value());
  CHECK_FALSE(find_cluster("h100-2x").cluster.has_value());
  CHECK_FALSE(find_cluster("h100-99999999999999").cluster.has_value());
  CHECK_FALSE(find_cluster("h100-2000000000x8").cluster.has_value());
  CHECK_FALSE(find_cluster("").cluster.has_value());
}

TEST_CASE("every preset's name is a cluster, and predicts something", "[cost]") {
  for (const std::string& name : preset_names()) {
    CAPTURE(name);
    const Tuner tuner(whole(cluster(name)));
    CHECK(tuner.choose({.function = Function::all_reduce, .bytes = 1 << 20})->time > 0);
  }
  CHECK(preset_names().size() == machines().size());
}

TEST_CASE("the estimate of graphs gives the rings that the search finds", "[cost]") {
  for (const char* name : {"a100-8", "a100-2x8", "h100-8", "h100-2x8", "h200-16x8", "b200-8", "a100-mesh-4",
                           "h100-2x4", "h100-2x2", "h100-2x1"}) {
    CAPTURE(name);
    const Cluster known = cluster(name);
    const Graphs derived = derive_graphs(known, known.gpus_per_node, known.nodes > 1);
    const Graphs& found = whole(known).graphs;
    CHECK(derived.ring.channels == found.ring.channels);
    CHECK(derived.ring.intra_speed == found.ring.intra_speed);
    CHECK(derived.ring.inter_speed == found.ring.inter_speed);
    CHECK(derived.channels == found.channels);
    CHECK(derived.nvls.channels == found.nvls.channels);
    CHECK(derived.nvls_channels == found.nvls_channels);
  }
}

TEST_CASE("slower NICs make a larger cluster slower, and nothing else", "[cost]") {
  const auto time = [](std::string_view name, std::int64_t bytes) {
    return Tuner(whole(cluster(name))).choose({.function = Function::all_gather, .bytes = bytes})->time;
  };
  CHECK(time("h100-2x8@200G", 1 << 30) > 1.5 * time("h100-2x8", 1 << 30));
  CHECK(time("h100-8@200G", 1 << 30) == time("h100-8", 1 << 30));
}

}  // namespace rollcall::cost::presets_test
