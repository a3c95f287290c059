#include "sim/cost/tuner_model.h"

#include <algorithm>
#include <bit>

#include "sim/base/expects.h"
#include "sim/cost/nccl_tuning_tables.h"

namespace rollcall::cost {

namespace {

bool gathers_or_scatters(Function function) {
  return function == Function::all_gather || function == Function::reduce_scatter;
}

bool is_collnet(Algorithm algorithm) {
  return algorithm == Algorithm::collnet_direct || algorithm == Algorithm::collnet_chain;
}

int floor_log2(int value) { return std::bit_width(static_cast<unsigned>(value)) - 1; }

// The table of one function, algorithm and protocol on one communicator. Steps, names and order of the
// corrections are those of ncclTopoTuneModel.
class Model {
 public:
  Model(const Communicator& communicator, Function function, Algorithm algorithm, Protocol protocol,
        bool is_asked_for)
      : comm_(communicator),
        graph_(graph_of(communicator.graphs, algorithm)),
        function_(function),
        algorithm_(algorithm),
        protocol_(protocol),
        is_asked_for_(is_asked_for) {}

  // Why NCCL has no such pair here; empty if it has one.
  std::string_view missing() const {
    if (const std::string_view reason = missing_kernel(); !reason.empty()) {
      return reason;
    }
    if (graph_.channels == 0) {
      return is_nvls(algorithm_) ? "no NVLink SHARP on this machine" : "no channels found";
    }
    if (protocol_ == Protocol::ll128 && !is_asked_for_ && !allows_ll128()) {
      return "LL128 needs NVLink inside a node and NICs near the GPUs";
    }
    return missing_hardware();
  }

  double bandwidth() const {
    double bus = raw_bandwidth();
    switch (algorithm_) {
      case Algorithm::ring:
        bus = ring_bandwidth(bus);
        break;
      case Algorithm::tree:
        bus = tree_bandwidth(bus);
        break;
      case Algorithm::pat:
        bus *= 0.75;
        break;
      case Algorithm::collnet_direct:
        bus = collnet_direct_bandwidth(bus);
        break;
      case Algorithm::collnet_chain:
      case Algorithm::nvls:
      case Algorithm::nvls_tree:
        break;
    }
    return to_algorithm_bandwidth(bus);
  }

  double latency() const {
    const double base = base_latency[index(algorithm_)][index(protocol_)];
    const double intra = intra_latency();
    const double inter = inter_latency();
    const int rank_hops = comm_.ranks_per_node() - 1;
    const int node_hops = floor_log2(comm_.nodes);
    switch (algorithm_) {
      case Algorithm::ring:
        return base + (is_rooted() ? rooted_ring_latency() : ring_latency(intra, inter));
      case Algorithm::tree:
        return base + 2 * (rank_hops * intra + node_hops * inter);
      case Algorithm::collnet_direct:
        return base + 2 * (std::min(1, rank_hops) * intra + rank_hops * 0.4) + inter;
      case Algorithm::collnet_chain:
        return base + 2 * (rank_hops * intra) + inter;
      case Algorithm::nvls:
        return intra + (comm_.nodes > 1 ? inter : 0);
      case Algorithm::nvls_tree:
        return base + intra + 2 * (node_hops * inter);
      case Algorithm::pat:
        return base + node_hops * (inter / 3.5) + comm_.ranks * 2.8;
    }
    expects(false, "an algorithm is one of the enumerators");
    return 0;
  }

 private:
  static const ChannelGraph& graph_of(const Graphs& graphs, Algorithm algorithm) {
    switch (algorithm) {
      case Algorithm::tree:
      case Algorithm::pat:  // walks the tree's links
        return graphs.tree;
      case Algorithm::ring:
        return graphs.ring;
      case Algorithm::collnet_direct:
        return graphs.collnet_direct;
      case Algorithm::collnet_chain:
        return graphs.collnet_chain;
      case Algorithm::nvls:
      case Algorithm::nvls_tree:
        return graphs.nvls;
    }
    expects(false, "an algorithm is one of the enumerators");
    return graphs.ring;
  }

  bool is_rooted() const { return function_ == Function::broadcast || function_ == Function::reduce; }
  bool is_all_reduce() const { return function_ == Function::all_reduce; }

  std::string_view missing_kernel() const {
    if (is_rooted() && algorithm_ != Algorithm::ring) {
      return "broadcast and reduce exist as Ring only";
    }
    if (gathers_or_scatters(function_) &&
        (algorithm_ == Algorithm::tree || algorithm_ == Algorithm::nvls_tree ||
         algorithm_ == Algorithm::collnet_chain)) {
      return "all_gather and reduce_scatter exist as Ring, NVLS, CollNetDirect and PAT only";
    }
    if (is_all_reduce() && algorithm_ == Algorithm::pat) {
      return "PAT exists for all_gather and reduce_scatter only";
    }
    const bool is_plain = algorithm_ == Algorithm::ring || algorithm_ == Algorithm::tree;
    if (!is_plain && protocol_ != Protocol::simple) {
      return "exists as Simple only";
    }
    return {};
  }

  std::string_view missing_hardware() const {
    const bool is_alone = comm_.nodes == 1;
    if (is_collnet(algorithm_) && (is_alone || !comm_.collnet)) {
      return is_alone ? "needs several nodes" : "the network cannot reduce (no SHARP)";
    }
    if (algorithm_ == Algorithm::collnet_direct && gathers_or_scatters(function_)) {
      return "no network plugin offers this operation";
    }
    if (algorithm_ == Algorithm::nvls && !is_alone && (!comm_.collnet || gathers_or_scatters(function_))) {
      return "between nodes NVLS needs a network that reduces (SHARP)";
    }
    if (algorithm_ == Algorithm::nvls_tree && is_alone) {
      return "needs several nodes";
    }
    if (algorithm_ == Algorithm::pat && (is_alone || comm_.ranks_per_node() > 1)) {
      return "PAT runs with one rank per node only";
    }
    if (is_nvls(algorithm_) && graph_.channels < 2) {
      return "NVLS needs two channels";
    }
    return {};
  }

  bool allows_ll128() const {
    const PathType farthest = comm_.compute_capability >= 90 ? PathType::pxn : PathType::pxb;
    return graph_.intra_path <= PathType::nvb && graph_.inter_path <= farthest &&
           comm_.compute_capability >= 70;
  }

  std::size_t generation() const {
    const int capability = comm_.compute_capability;
    return index(capability >= 100  ? Generation::blackwell
                 : capability >= 90 ? Generation::hopper
                 : capability >= 80 ? Generation::ampere
                                    : Generation::volta);
  }
  std::size_t nodes_column() const { return comm_.nodes == 1 ? 0 : comm_.nodes == 2 ? 1 : 2; }
  const ReleaseConstants& constants() const { return constants_of(comm_.release); }
  double cap(const Caps& caps) const { return caps[generation()][nodes_column()]; }

  // Between nodes the row depends on the host: LL polls flags in host memory.
  double ll_cap() const {
    const std::size_t row = comm_.nodes == 1
                                ? generation()
                                : index(comm_.cpu == CpuVendor::amd ? Generation::ampere : Generation::volta);
    return ll_bandwidth[row][nodes_column()];
  }

  double raw_bandwidth() const {
    const bool by_intra = comm_.nodes <= 2 || is_collnet(algorithm_);
    const double speed = is_nvls(algorithm_) ? nvls_speed()
                         : by_intra          ? graph_.intra_speed
                                             : graph_.inter_speed;
    return graph_.channels * speed;
  }

  double nvls_speed() const {
    if (!constants().has_nvls_efficiency) {
      return old_nvls_speed();
    }
    const double heads = graph_.channels;
    const double share = is_all_reduce() ? 2.0 : (comm_.ranks_per_node() - 1.0) / comm_.ranks_per_node();
    const double intra = graph_.intra_speed * nvls_efficiency[generation()] * (heads - 1) / heads * share;
    const bool is_tree = algorithm_ == Algorithm::nvls_tree;
    const double inter = graph_.inter_speed * (comm_.nodes <= 2 && is_tree ? 2 : 1);
    const double speed = std::min(intra, inter);
    return is_tree ? std::min(speed, cap(constants().nvls_tree_per_channel)) : speed;
  }

  // Before 2.28.
  double old_nvls_speed() const {
    if (algorithm_ == Algorithm::nvls_tree) {
      return std::min(graph_.intra_speed, comm_.nodes <= 2 ? graph_.inter_speed : graph_.inter_speed / 2);
    }
    const double local = comm_.ranks_per_node();
    return is_all_reduce() ? std::min(graph_.intra_speed, graph_.inter_speed)
                           : std::min(graph_.intra_speed * (local - 1) / local, graph_.inter_speed * 0.9);
  }

  double ring_bandwidth(double bus) const {
    switch (protocol_) {
      case Protocol::ll:
        return std::min(ll_cap(), bus * 0.5);
      case Protocol::ll128:
        return std::min(bus * 0.92, graph_.channels * cap(constants().ring_ll128_per_channel));
      case Protocol::simple:
        return bus;
    }
    return bus;
  }

  double tree_bandwidth(double bus) const {
    bus = std::min(bus * 0.92, graph_.channels * cap(constants().tree_per_channel));
    if (protocol_ == Protocol::ll) {
      bus = std::min(bus / 3.8, ll_cap());
    } else if (protocol_ == Protocol::ll128) {
      bus = std::min(bus * (comm_.nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
                     graph_.channels * cap(constants().tree_ll128_per_channel));
    }
    return graph_.pattern == ChannelGraph::Pattern::tree ? bus * 0.85 : bus;
  }

  double collnet_direct_bandwidth(double bus) const {
    const int local = comm_.ranks_per_node();
    if (gathers_or_scatters(function_)) {
      return local * std::min(graph_.intra_speed, graph_.inter_speed * 0.9);
    }
    const double factor = static_cast<double>(local) / graph_.channels;
    bus /= factor - (factor - 1) / 2;
    return comm_.compute_capability >= 90 ? bus * 0.85 : bus;
  }

  double steps() const { return ring_steps(function_, comm_.ranks); }

  double to_algorithm_bandwidth(double bus) const {
    if (algorithm_ != Algorithm::ring && gathers_or_scatters(function_)) {
      return bus;
    }
    if (is_nvls(algorithm_) && !constants().has_nvls_efficiency) {
      return bus * 5 / 6;
    }
    const bool by_steps = algorithm_ == Algorithm::ring || is_nvls(algorithm_);
    return bus * (by_steps ? comm_.ranks / steps() : 0.5);
  }

  double link_latency(Algorithm algorithm) const {
    const bool is_nvlink = graph_.intra_path == PathType::nvl;
    return (is_nvlink ? nvlink_latency : pci_latency)[index(algorithm)][index(protocol_)];
  }

  double intra_latency() const { return link_latency(algorithm_); }

  // A rank alone in its node has the same latency in a ring as in a tree.
  double inter_latency() const {
    const bool is_alone = comm_.ranks_per_node() == 1 && algorithm_ == Algorithm::ring;
    const Algorithm row = is_alone ? Algorithm::tree : algorithm_;
    const double hop = algorithm_ == Algorithm::nvls_tree ? constants().nvls_tree_net_latency
                                                          : net_latency[index(row)][index(protocol_)];
    return hop + graph_.nic_latency * (protocol_ == Protocol::simple ? 2 : 1);
  }

  double rooted_ring_latency() const {
    const auto hop = [this](Algorithm algorithm) {
      return comm_.nodes == 1 ? link_latency(algorithm) : net_latency[index(algorithm)][index(protocol_)];
    };
    if (graph_.same_channels) {
      return hop(Algorithm::ring);
    }
    return comm_.ranks * hop(protocol_ == Protocol::simple ? Algorithm::tree : Algorithm::ring);
  }

  double ring_latency(double intra, double inter) const {
    const int node_steps = comm_.nodes == 1 ? 0 : (is_all_reduce() ? 2 : 1) * (comm_.nodes - 1);
    const double per_message = comm_.cpu == CpuVendor::amd ? 2 : 1;  // the host's cost of each
    const double overhead = comm_.nodes == 1 ? 0 : per_message * (protocol_ == Protocol::simple ? 3 : 1);
    return (steps() - node_steps) * std::max(intra, overhead) + node_steps * inter;
  }

  const Communicator& comm_;
  const ChannelGraph& graph_;
  const Function function_;
  const Algorithm algorithm_;
  const Protocol protocol_;
  const bool is_asked_for_;
};

}  // namespace

Tuner::Entry model_entry(const Communicator& communicator, Function function, Algorithm algorithm,
                         Protocol protocol, bool is_asked_for) {
  const Model model(communicator, function, algorithm, protocol, is_asked_for);
  if (const std::string_view missing = model.missing(); !missing.empty()) {
    return {.missing = missing};
  }
  const double bandwidth = model.bandwidth();
  return {model.latency(), bandwidth,
          bandwidth <= 0 ? "this generation of GPUs has no bandwidth for it" : ""};
}

}  // namespace rollcall::cost
