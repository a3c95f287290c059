#include "sim/cost/expectation.h"

#include "sim/cost/group_cost.h"
#include "sim/cost/portable_math.h"
#include "sim/cost/presets.h"
#include "tests/catch.h"

namespace rollcall::cost::expectation_test {

namespace {

Cluster cluster(const std::string& name) { return find_cluster(name).cluster.value(); }

GroupCost whole(const Cluster& cluster) {
  return GroupCost(communicator_of(cluster, cluster.nodes * cluster.gpus_per_node, cluster.nodes));
}

double expected(const Cluster& cluster, const Call& call) { return whole(cluster).predict(call)->fitted; }

double busbw(const GroupCost& group, const Call& call) {
  return static_cast<double>(call.bytes) / (1000 * group.predict(call)->fitted) *
         busbw_factor(call.kind, group.communicator().ranks);
}

}  // namespace

TEST_CASE("no expectation is above what a GPU's port carries, nor what a node's NICs do", "[cost]") {
  for (const MachineSummary& machine : machines()) {
    for (const int nodes : {1, 2, 16}) {
      Cluster each = *find_machine(machine.name);
      each.nodes = nodes;
      for (const int nics : {each.links.nics, 4 * each.links.nics}) {
        each.links.nics = nics;
        each.layouts.clear();
        const GroupCost group = whole(each);
        for (const OpKind kind : {OpKind::all_gather, OpKind::reduce_scatter, OpKind::broadcast,
                                  OpKind::all_reduce, OpKind::all_to_all}) {
          CAPTURE(machine.name, nodes, nics, to_string(kind));
          const Call call{.kind = kind, .bytes = std::int64_t{1} << 36};
          // Without NVLink, an all_to_all leaves a GPU by PCIe, wherever it goes.
          const bool is_spread = kind == OpKind::all_to_all && each.links.nvlink == Links::NvLink::none;
          const double port = is_spread ? each.links.pcie_speed : gpu_port_speed(each.links);
          // With switches that reduce, and with two trees over two nodes, a byte is passed fewer times than busbw
          // counts.
          const double share = kind == OpKind::all_reduce ? 2 : 1.001;
          CHECK(busbw(group, call) <= port * share);
          if (nodes > 1) {
            const double network = each.links.nics * each.links.nic_speed;
            CHECK(busbw(group, call) <= network * share);
          }
        }
      }
    }
  }
}

TEST_CASE("no release, size, launch or calibration makes any preset faster than its ports", "[cost]") {
  Correction too_fast{.kind = OpKind::all_reduce, .factor = 0.01, .anchors = {}};
  for (const MachineSummary& machine : machines()) {
    for (const int nodes : {1, 2, 9}) {
      for (const char* release : {"2.27", "2.28", "2.29", "2.30"}) {
        for (const bool is_tuned : {false, true}) {
          Cluster each = *find_machine(machine.name);
          each.nodes = nodes;
          each.release = parse_release(release).value();
          each.launch = {.cuda_graphs = is_tuned, .symmetric_memory = is_tuned};
          too_fast.several_nodes = nodes > 1;
          each.corrections = is_tuned ? std::vector{too_fast} : std::vector<Correction>();
          const GroupCost group = whole(each);
          const double port = gpu_port_speed(each.links);
          const double nics = each.links.nics * each.links.nic_speed;
          for (const OpKind kind : {OpKind::all_gather, OpKind::reduce_scatter, OpKind::broadcast,
                                    OpKind::reduce, OpKind::all_reduce, OpKind::all_to_all}) {
            // As above; also, the root of a reduce or broadcast moves each byte once, and a switch does the rest.
            const double share = kind == OpKind::all_reduce ? 2 : 1.001;
            const bool is_spread = kind == OpKind::all_to_all && each.links.nvlink == Links::NvLink::none;
            for (std::int64_t bytes = 1024; bytes <= std::int64_t{1} << 40; bytes *= 64) {
              CAPTURE(machine.name, nodes, release, is_tuned, to_string(kind), bytes);
              const double speed = busbw(group, {.kind = kind, .bytes = bytes});
              CHECK(speed <= (is_spread ? each.links.pcie_speed : port) * share);
              CHECK((nodes == 1 || speed <= nics * share));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("NICs that together carry more than a port do not make rings faster than the port", "[cost]") {
  Cluster many = cluster("h100-2x8");
  many.links.nics = 32;
  many.layouts.clear();
  const Graphs graphs = derive_graphs(many, 8, true);
  CHECK(graphs.ring.channels * graphs.ring.inter_speed <= gpu_port_speed(many.links));
}

TEST_CASE("NICs of 800 Gb/s are searched at the speeds that the release lists", "[cost]") {
  const auto ring = [](const char* release) {
    Cluster each = cluster("gb300-tray-2x4");
    each.release = parse_release(release).value();
    return derive_graphs(each, 4, true).ring;
  };
  CHECK(ring("2.28").channels * ring("2.28").inter_speed == 384);  // four of 96, each split
  Cluster slower = cluster("gb300-tray-2x4@700G");
  slower.release = parse_release("2.28").value();
  CHECK(derive_graphs(slower, 4, true).ring.inter_speed ==
        24);  // 48 split: no speed is listed between 48 and 96
  slower.release = parse_release("2.30").value();
  CHECK(derive_graphs(slower, 4, true).ring.inter_speed == 43);  // 86 split
}

TEST_CASE("releases are named as NCCL names them", "[cost]") {
  CHECK(parse_release("2.28") == 22809);
  CHECK(parse_release("2.28.3") == 22803);
  CHECK(parse_release("2.30") == newest_release);
  CHECK(release_name(22809) == "2.28.9");
  for (const char* wrong : {"", "2", "2.26", "2.31", "3.0", "2.28.9.1", "2.x", "v2.28", "2.28."}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_release(wrong).has_value());
  }
}

TEST_CASE("a release has its own numbers for Blackwell, and all have the same for Hopper", "[cost]") {
  const auto bandwidth = [](const char* name, const char* release, Algorithm algorithm, Protocol protocol) {
    Cluster each = cluster(name);
    each.release = parse_release(release).value();
    return Tuner(communicator_of(each, each.nodes * each.gpus_per_node, each.nodes))
        .entry(Function::all_reduce, algorithm, protocol)
        .bandwidth;
  };
  // 8 channels of 48 / 0.92, capped at 34.6, then at 40: 16 ranks in 30 steps.
  CHECK(bandwidth("b200-2x8", "2.28", Algorithm::ring, Protocol::ll128) == Approx(8 * 34.6 * 16 / 30));
  CHECK(bandwidth("b200-2x8", "2.30", Algorithm::ring, Protocol::ll128) == Approx(8 * 40.0 * 16 / 30));
  CHECK(bandwidth("b200-4x8", "2.28", Algorithm::nvls_tree, Protocol::simple) == Approx(8 * 43.8 * 32 / 62));
  CHECK(bandwidth("b200-4x8", "2.30", Algorithm::nvls_tree, Protocol::simple) == Approx(8 * 48.0 * 32 / 62));
  for (const char* release : {"2.29", "2.30"}) {
    CHECK(bandwidth("h100-2x8", release, Algorithm::ring, Protocol::ll128) ==
          bandwidth("h100-2x8", "2.28", Algorithm::ring, Protocol::ll128));
  }
}

TEST_CASE("one process with eight GPUs pays eight launches, CUDA graphs fewer", "[cost]") {
  Cluster each = cluster("a100-8");
  const Call small{.bytes = 8};
  const double apart = expected(each, small);
  each.launch.gpus_per_process = 8;
  const double together = expected(each, small);
  each.launch.cuda_graphs = true;
  const double recorded = expected(each, small);
  CHECK(together > apart);
  CHECK(recorded < together);
  each.launch = {};
  CHECK(expected(each, {.bytes = 1 << 30}) > 100 * apart);
}

TEST_CASE("a hop over EFA or Slingshot costs more than one over InfiniBand", "[cost]") {
  CHECK(expected(cluster("p5-2x8"), {.bytes = 8}) > expected(cluster("h100-2x8"), {.bytes = 8}) + 30);
  CHECK(whole(cluster("p5-2x8")).predict({.bytes = 8})->time ==
        Approx(whole(cluster("h100-2x8")).predict({.bytes = 8})->time)
            .epsilon(0.001));  // NCCL estimates the same
}

TEST_CASE("a protocol that is asked for is used where NCCL would not", "[cost]") {
  const Cluster each = cluster("l40s-2");
  CHECK(whole(each).predict({.bytes = 1 << 20})->protocol != Protocol::ll128);
  const auto forced = whole(each).predict({.bytes = 1 << 20, .protocol = Protocol::ll128});
  REQUIRE(forced.has_value());
  CHECK(forced->protocol == Protocol::ll128);
}

TEST_CASE("registered memory has kernels of its own", "[cost]") {
  Cluster each = cluster("b200-8");
  each.launch.symmetric_memory = true;
  const auto small = whole(each).predict({.bytes = 1024}).value();
  CHECK(small.algorithm == "AGxLLMC_R");
  CHECK(small.time == Approx(11).margin(1));  // NCCL's own number for Blackwell, launch included
  CHECK(whole(each).predict({.bytes = 1 << 30})->algorithm == "RSxLDMC_AGxSTMC");
  CHECK(whole(each).predict({.bytes = 1024, .reduce = ReduceOp::max})->algorithm == "Ring");
  each = cluster("b200-2x8");
  each.launch.symmetric_memory = true;
  CHECK(whole(each).predict({.bytes = 1024})->algorithm != "AGxLLMC_R");  // several nodes
}

TEST_CASE("exp and log are right to the last places", "[cost]") {
  CHECK(portable_exp(0) == 1);
  CHECK(portable_exp(1) == Approx(2.718281828459045).epsilon(1e-14));
  CHECK(portable_exp(-20) == Approx(2.061153622438558e-09).epsilon(1e-13));
  CHECK(portable_log(portable_exp(30)) == Approx(30).epsilon(1e-14));
  CHECK(portable_log(0.001) == Approx(-6.907755278982137).epsilon(1e-14));
}

TEST_CASE("a rack is one node, and its trays are counted to it", "[cost]") {
  CHECK(cluster("gb200-72").nodes == 1);
  CHECK(cluster("gb200-18x4").nodes == 1);
  CHECK(cluster("gb200-18x4").gpus_per_node == 72);
  CHECK(cluster("gb300-32x4").nodes == 2);
  CHECK(cluster("gb300-32x4").gpus_per_node == 64);
  CHECK(cluster("gb200-144").nodes == 2);
  CHECK(cluster("gb200-2x64").gpus_per_node == 64);
  CHECK(find_cluster("gb200-19x4").suggestion == "gb200-20x4");
  CHECK(find_cluster("b200-72").suggestion == "gb200-72");
  CHECK(cluster("b200-9x8").nodes == 9);
  CHECK(cluster("b200-16").nodes == 2);
}

}  // namespace rollcall::cost::expectation_test
