#include "scenarios/measured/cluster_from.h"

#include <nlohmann/json.hpp>

#include "scenarios/format/cluster_reader.h"
#include "scenarios/json/diagnostic.h"
#include "sim/cost/group_cost.h"
#include "sim/cost/presets.h"
#include "tests/catch.h"
#include "tests/folder.h"

namespace rollcall::measured::cluster_from_test {

namespace {

// NCCL 2.28.9's output for two nodes of 8 H100 with NCCL_DEBUG_SUBSYS=INIT,GRAPH, from one rank, without most lines.
constexpr const char* log_of_h100 = R"(n0:41:41 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>
n0:41:41 [0] NCCL INFO NCCL version 2.28.9+cuda13.0
n0:41:42 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>
n0:41:42 [0] NCCL INFO === System : maxBw 50.0 totalBw 370.8 ===
n0:41:42 [0] NCCL INFO CPU/0-0 (1/1/4)
n0:41:42 [0] NCCL INFO + PCI[48.0] - PCI/0-1a000 (1000c03015d9)
n0:41:42 [0] NCCL INFO               + PCI[48.0] - GPU/0-1b000 (0)
n0:41:42 [0] NCCL INFO                             + NVL[370.8] - NVS/0-0
n0:41:42 [0] NCCL INFO               + PCI[48.0] - NIC/0-1c000
n0:41:42 [0] NCCL INFO                             + NET[50.0] - NET/0-0 (0/1234/1/50.000000)
n0:41:42 [0] NCCL INFO                             + NET[50.0] - NET/0-1 (0/1235/1/50.000000)
n0:41:42 [0] NCCL INFO CPU/0-1 (1/1/4)
n0:41:42 [0] NCCL INFO Pattern 4, crossNic 0, nChannels 8, bw 48.000000/48.000000, type NVL/PIX, sameChannels 0
n0:41:42 [0] NCCL INFO  0 : NET/0-0 GPU/0-1b000 GPU/0-3b000 NET/0-0
n0:41:42 [0] NCCL INFO Pattern 3, crossNic 0, nChannels 8, bw 48.000000/48.000000, type NVL/PIX, sameChannels 0
n0:41:42 [0] NCCL INFO Pattern 5, crossNic 0, nChannels 8, bw 40.000000/48.000000, type NVL/PIX, sameChannels 0
n0:41:42 [0] NCCL INFO comm 0x55d0 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0
n0:41:42 [0] NCCL INFO 16 coll channels, 16 collnet channels, 16 nvls channels, 16 p2p channels, 2 p2p channels per peer
)";

// The NCCL_TOPO_DUMP_FILE of a machine with 2 of 8 H100, shortened.
constexpr const char* topology = R"(<system version="1">
  <cpu host_hash="0xabc" numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="17">
    <pci busid="0000:1a:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:1b:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="90" rank="0" gdr="1">
          <nvlink target="0000:05:00.0" count="9" tclass="0x068000"/>
          <nvlink target="0000:06:00.0" count="9" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:3b:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="90" rank="1" gdr="1">
          <nvlink target="0000:05:00.0" count="18" tclass="0x068000"/>
        </gpu>
      </pci>
      <nic>
        <net name="mlx5_0" dev="0" speed="400000" port="1" latency="0.000000" guid="0x1" maxconn="131072" gdr="1"/>
      </nic>
    </pci>
  </cpu>
</system>
)";

constexpr const char* graphs = R"(<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="12" speedintra="30"
         speedinter="30" latencyinter="0" typeintra="NVL" typeinter="PIX" samechannels="1">
    <channel><gpu dev="0"/><gpu dev="1"/></channel>
  </graph>
  <graph id="1" pattern="1" crossnic="0" nchannels="12" speedintra="60"
         speedinter="60" latencyinter="0" typeintra="NVL" typeinter="PIX" samechannels="0"/>
  <graph id="2" pattern="3" crossnic="0" nchannels="0" speedintra="0"
         speedinter="0" latencyinter="0" typeintra="LOC" typeinter="LOC" samechannels="0"/>
  <graph id="3" pattern="5" crossnic="0" nchannels="2" speedintra="60"
         speedinter="60" latencyinter="0" typeintra="NVL" typeinter="PIX" samechannels="0"/>
</graphs>
)";

}  // namespace

TEST_CASE("a cluster made from NCCL's log predicts what the preset of that machine does", "[measured]") {
  const test::Folder folder;
  const std::string log = folder.write("nccl.log", log_of_h100);
  const ClusterFile file = cluster_from({log});
  const cost::Cluster cluster = scenario::load_cluster(folder.write("cluster.json", file.json));
  CHECK(cluster.nodes == 2);
  CHECK(cluster.gpus_per_node == 8);
  CHECK(cluster.compute_capability == 90);
  CHECK(cluster.release == 22809);
  CHECK(cluster.links.sockets == 2);
  const cost::GroupCost found(cost::communicator_of(cluster, 16, 2));
  const cost::GroupCost preset(cost::communicator_of(*cost::find_cluster("h100-2x8").cluster, 16, 2));
  for (std::int64_t bytes = 8; bytes <= std::int64_t{1} << 34; bytes *= 2) {
    CAPTURE(bytes);
    CHECK(found.predict({.bytes = bytes})->time == preset.predict({.bytes = bytes})->time);
    CHECK(found.predict({.bytes = bytes})->algorithm == preset.predict({.bytes = bytes})->algorithm);
  }
  CHECK_THAT(file.remarks.at(0), Contains("compute capability 90 is inferred"));
}

TEST_CASE("the topology's and the graphs' dump complete each other", "[measured]") {
  const test::Folder folder;
  const ClusterFile file =
      cluster_from({folder.write("topo.xml", topology), folder.write("graph.xml", graphs)});
  const auto json = nlohmann::json::parse(file.json);
  CHECK(json["gpus_per_node"] == 2);
  CHECK(json["compute_capability"] == 90);
  CHECK(json["cpu"] == "amd");
  CHECK(json["links"]["nvlink"] == "switch");
  CHECK(json["links"]["nvlink_count"] == 18);
  CHECK(json["links"]["nic_speed"] == "50GB/s");
  CHECK(json["graphs"]["ring"]["channels"] == 12);
  CHECK(json["graphs"]["tree"]["pattern"] == "balanced");
  CHECK(json["graphs"]["nvls"]["channels"] == 2);
  CHECK(file.remarks.empty());
  CHECK(scenario::load_cluster(folder.write("cluster.json", file.json)).gpus_per_node == 2);
}

TEST_CASE("a topology alone leaves the graphs to an estimate, and says so", "[measured]") {
  const test::Folder folder;
  const ClusterFile file = cluster_from({folder.write("topo.xml", topology)});
  CHECK_FALSE(nlohmann::json::parse(file.json).contains("graphs"));
  CHECK_THAT(file.remarks.at(0), Contains("estimated from the links"));
}

TEST_CASE("what is no file of NCCL's is refused, and what says too little", "[measured]") {
  const test::Folder folder;
  CHECK_THROWS_AS(cluster_from({folder.write("a.txt", "hello\n")}), scenario::InvalidScenario);
  CHECK_THROWS_AS(cluster_from({folder.write("b.xml", "<html><body></body></html>\n")}),
                  scenario::InvalidScenario);
  CHECK_THROWS_AS(cluster_from({folder.write("c.xml", graphs)}), std::invalid_argument);
}

}  // namespace rollcall::measured::cluster_from_test
