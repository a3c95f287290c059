#include "sim/cost/expectation.h"

#include <algorithm>
#include <array>

#include "sim/cost/tuner_model.h"

namespace rollcall::cost {

namespace {

// The share of a GPU's port that rings reach: h100_sxm_1x8 and b300_sxm_1x4 on one node; between nodes, where a NIC's
// traffic passes the same ports, h100_sxm_10x8 and h200_sxm_2x8.
constexpr double ring_share = 0.97;
constexpr double ring_share_between_nodes = 0.9;
// The share of a port that NVLink SHARP reaches for an all_reduce, by generation: h100_sxm_1x8 and gb300_nvl72_16x4;
// with a tree between nodes, h100_sxm_2x8 and gb300_nvl72_32x4.
constexpr double nvls_share(int capability) { return capability >= 100 ? 0.63 : 0.76; }
// Blackwell's tree lost half of it over more than two nodes, until 2.30.3 (NCCL's own caps say the same).
constexpr double nvls_tree_share(const Communicator& communicator) {
  if (communicator.compute_capability < 100) {
    return 0.70;
  }
  return communicator.nodes == 2 || communicator.release >= 23003 ? 0.51 : 0.27;
}
constexpr double reached_of_nics = 0.97;

// Fitted to b200_sxm_1x8_symmetric, the only table of such kernels.
constexpr double symmetric_ll_base = 3.4;
constexpr double symmetric_base = 7.8;

constexpr double launch_cost = 4.5;         // a kernel launch, on one GPU after another
constexpr double recorded_launch_cost = 2;  // from a CUDA graph

Communicator as_measured(Communicator communicator, bool with_hops) {
  Graphs& graphs = communicator.graphs;
  for (ChannelGraph* graph : {&graphs.tree, &graphs.ring, &graphs.nvls}) {
    graph->nic_latency =
        with_hops ? std::max(communicator.links.nic_latency, extra_hop(communicator.links.network)) : 0;
  }
  communicator.cpu = CpuVendor::intel;  // measurements do not show AMD's hosts taking twice as long
  if (communicator.compute_capability >= 100) {
    communicator.release = newest_release;
    if (graphs.nvls.channels > 0) {
      graphs.nvls.intra_speed = gpu_port_speed(communicator.links) / graphs.nvls.channels;
    }
  }
  return communicator;
}

}  // namespace

double extra_hop(Network network) {
  // InfiniBand; EFA, from aws-ofi-nccl's own tuner (include/nccl_ofi_param.h, tuner_net_latency); Slingshot; sockets.
  constexpr std::array microseconds = std::to_array<double>({0, 20, 5, 30});
  static_assert(microseconds.size() == network_count);
  return microseconds[index(network)];
}

double launch_floor(const Launch& launch) {
  return launch.gpus_per_process * (launch.cuda_graphs ? recorded_launch_cost : launch_cost);
}

Expectation::Expectation(const Communicator& communicator)
    : given_(communicator),
      tuner_(as_measured(communicator, true)),
      without_hops_(as_measured(communicator, false)) {}

namespace {

struct Shares {
  double ring_port = 1;
  double nvls_port = 1;
  double nvls_tree_port = 1;
  double nics = 1;
};

// The algorithm bandwidth that ports and NICs carry for a call, given its shares of them. SHARP's switches reduce and
// copy, so that each byte passes a port once each way; a tree passes a node's NICs once between two nodes, and twice,
// towards the root and away from it, among more.
Carried bandwidth_of(const Communicator& communicator, Function function, Algorithm algorithm,
                     const Shares& shares) {
  constexpr double no_limit = 1e9;
  const bool is_alone = communicator.nodes == 1;
  const double around = communicator.ranks / ring_steps(function, communicator.ranks);
  const double port = gpu_port_speed(communicator.links);
  const double local_port = communicator.ranks_per_node() > 1 ? port : no_limit;
  const double nics =
      is_alone ? no_limit : nics_of(communicator) * communicator.links.nic_speed * shares.nics;
  const double tree_nics = communicator.nodes == 2 ? nics : nics / 2;
  const bool reduces_all = function == Function::all_reduce;
  switch (algorithm) {
    case Algorithm::ring:
      return {around * local_port * shares.ring_port, around * nics};
    case Algorithm::tree:
      return {local_port, tree_nics};
    case Algorithm::nvls:
      return reduces_all ? Carried{port * shares.nvls_port, nics} : Carried{port * around, nics * around};
    case Algorithm::nvls_tree:
      return {port * shares.nvls_tree_port, tree_nics};
    case Algorithm::collnet_direct:
    case Algorithm::collnet_chain:
    case Algorithm::pat:
      return reduces_all ? Carried{local_port, nics} : Carried{local_port * around, nics * around};
  }
  return {port, nics};
}

}  // namespace

Carried Expectation::carried(Function function, Algorithm algorithm) const {
  return bandwidth_of(given_, function, algorithm, {});
}

double Expectation::most_bandwidth(Function function, Algorithm algorithm) const {
  return bandwidth_of(given_, function, algorithm,
                      {given_.nodes == 1 ? ring_share : ring_share_between_nodes,
                       nvls_share(given_.compute_capability), nvls_tree_share(given_), reached_of_nics})
      .least();
}

// The time of the kernels themselves: NCCL's numbers for Blackwell include the launch.
double Expectation::symmetric_time(const Request& request, const SymmetricChoice& choice) const {
  const double base = choice.is_ll ? symmetric_ll_base : symmetric_base;
  const double launch = given_.launch.cuda_graphs ? 0 : launch_cost;
  const double bandwidth = most_bandwidth(request.function, Algorithm::nvls);
  const double ll_slowness = choice.is_ll ? 2.0 * given_.ranks : 1;  // all ranks send everything, with flags
  return base + launch + static_cast<double>(request.bytes) * ll_slowness / (1000 * bandwidth);
}

Expectation::Time Expectation::time(const Request& request, const Choice& choice) const {
  Request same = request;
  same.algorithm = choice.algorithm;
  same.protocol = choice.protocol;
  const Candidate modeled = tuner_.explain(same).front();
  const double bandwidth = std::min(modeled.bandwidth, most_bandwidth(request.function, choice.algorithm));
  const double moving = modeled.latency + static_cast<double>(request.bytes) / (1000 * bandwidth);
  const double hops = modeled.latency - without_hops_.explain(same).front().latency;
  return {std::max(moving, launch_floor(given_.launch)), hops};
}

}  // namespace rollcall::cost
