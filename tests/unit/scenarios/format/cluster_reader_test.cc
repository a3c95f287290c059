#include "scenarios/format/cluster_reader.h"

#include "scenarios/format/scenario.h"
#include "scenarios/json/diagnostic.h"
#include "tests/catch.h"

namespace rollcall::scenario::cluster_reader_test {

namespace {

sim::Options options_of(const std::string& cluster, int world_size = 16) {
  return parse_scenario(R"({"world_size": )" + std::to_string(world_size) +
                            R"(, "program": [], "cluster": )" + cluster + "}",
                        "test.json")
      .options;
}

// Returns the first complaint, as "/pointer: message -> suggestion".
std::string problem(const std::string& cluster) {
  try {
    options_of(cluster);
  } catch (const InvalidScenario& error) {
    const Diagnostic& first = error.diagnostics().front();
    return first.pointer + ": " + first.message + (first.suggestion.empty() ? "" : " -> " + first.suggestion);
  }
  return "";
}

}  // namespace

TEST_CASE("a preset's name is a cluster, its nodes as many as the ranks need", "[scenarios]") {
  const sim::Options options = options_of(R"("h100-8")");
  CHECK(options.ranks_per_host == 8);
  CHECK(options.cluster->machine == "h100");
  CHECK_FALSE(options.residuals);
}

TEST_CASE("an object that only spreads the ranks says nothing about time", "[scenarios]") {
  CHECK_FALSE(options_of(R"({"gpus_per_node": 8, "nodes": 2})").cluster.has_value());
}

TEST_CASE("an object may change a preset", "[scenarios]") {
  const auto cluster =
      options_of(R"({"preset": "h100-8", "nodes": 2, "cpu": "amd", "links": {"nic_speed": "200Gbps"},
                     "residuals": true})");
  CHECK(cluster.residuals);
  CHECK(cluster.cluster->nodes == 2);
  CHECK(cluster.cluster->cpu == cost::CpuVendor::amd);
  CHECK(cluster.cluster->links.nic_speed == 25);
  const cost::Communicator one = cost::communicator_of(*cluster.cluster, 8, 1);
  const cost::Communicator two = cost::communicator_of(*cluster.cluster, 16, 2);
  CHECK(one.graphs_are_known);  // the search within a node does not depend on the NICs
  CHECK_FALSE(two.graphs_are_known);
}

TEST_CASE("a network that reduces leaves the channels of a preset as they are", "[scenarios]") {
  const auto cluster = options_of(R"({"preset": "h100-8", "links": {"sharp": true}})").cluster.value();
  CHECK(cost::communicator_of(cluster, 16, 2).graphs_are_known);
  CHECK(cost::communicator_of(cluster, 16, 2).collnet);
}

TEST_CASE("a cluster may be described in full", "[scenarios]") {
  const auto cluster = options_of(R"({"gpus_per_node": 8, "compute_capability": 80, "cpu": "amd",
      "links": {"nvlink": "switch", "nvlink_count": 12, "nvlink_speed": "20GB/s", "nvls": false,
                "pcie_speed": "24GB/s", "sockets": 2, "socket_speed": "16GB/s",
                "nics": 8, "nic_speed": "200Gbps", "nic_path": "PIX", "nic_latency": "1us", "sharp": false}})")
                           .cluster.value();
  CHECK(cluster.links.nic_latency == 1);
  const cost::Communicator two = cost::communicator_of(cluster, 16, 2);
  CHECK(two.graphs.ring.channels == 8);
  CHECK(two.graphs.ring.inter_speed == 24);
}

TEST_CASE("channels that NCCL's log shows may be given, and count", "[scenarios]") {
  const auto cluster = options_of(R"({"gpus_per_node": 4, "graphs": {
      "ring": {"channels": 2, "intra_speed": "1.2GB/s", "intra_path": "SYS", "inter_path": "SYS",
               "same_channels": true},
      "tree": {"pattern": "plain", "channels": 2, "intra_speed": "2.4GB/s", "inter_speed": "1.2GB/s"},
      "channels": 4}})")
                           .cluster.value();
  const cost::Communicator four = cost::communicator_of(cluster, 4, 1);
  CHECK(four.graphs_are_known);
  CHECK(four.graphs.channels == 4);
  CHECK(four.graphs.ring.inter_speed == 1.2);
  CHECK(four.graphs.tree.pattern == cost::ChannelGraph::Pattern::tree);
  CHECK(four.graphs.tree.inter_speed == 1.2);
}

TEST_CASE("what is wrong with a cluster is said where it is wrong", "[scenarios]") {
  CHECK_THAT(problem(R"("h100-x8")"), Contains("/cluster: unknown cluster"));
  CHECK(problem(R"({"preset": "h100"})") ==
        "/cluster/preset: the number of GPUs of h100 is missing -> h100-8");
  CHECK(problem(R"({"preset": "h100-8", "gpus_per_node": 9})") ==
        "/cluster/gpus_per_node: a h100 machine has 8 GPUs");
  CHECK(problem(R"({"links": {"nics": 8}})") == "/cluster: \"gpus_per_node\" is missing");
  CHECK_THAT(problem(R"({"preset": "h100-8", "links": {"nic_speed": 400}})"),
             Contains("/cluster/links/nic_speed"));
  CHECK(problem(R"({"preset": "h100-8", "links": {"nic_speed": "0Gbps"}})") ==
        "/cluster/links/nic_speed: must be more than 0");
  CHECK_THAT(problem(R"({"preset": "h100-8", "links": {"nic_sped": "1Gbps"}})"), Contains("nic_speed"));
  CHECK_THAT(problem(R"({"preset": "h100-8", "links": {"nic_path": "FAR"}})"),
             Contains("/cluster/links/nic_path"));
  CHECK_THAT(problem(R"({"gpus_per_node": 8, "links": {"nvlink": "switch"}})"), Contains("NVLink needs"));
  CHECK_THAT(problem(R"({"gpus_per_node": 8, "graphs": {"channels": 2}})"), Contains("\"ring\" is missing"));
  CHECK(problem(R"({"preset": "h100-8", "nodes": 1})") == "/cluster/nodes: 16 ranks need 2 nodes of 8 GPUs");
}

}  // namespace rollcall::scenario::cluster_reader_test
