#include "sim/cost/tuner.h"

#include <algorithm>
#include <bit>

#include "sim/base/ascii.h"
#include "sim/base/expects.h"
#include "sim/cost/nccl_tuning_tables.h"
#include "sim/cost/tuner_model.h"

namespace rollcall::cost {

namespace {

constexpr std::array<std::string_view, algorithm_count> algorithm_names{
    "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
constexpr std::array<std::string_view, protocol_count> protocol_names{"LL", "LL128", "Simple"};
constexpr std::array<std::string_view, function_count> function_names{"Broadcast", "Reduce", "AllGather",
                                                                      "ReduceScatter", "AllReduce"};

template <typename Enum, std::size_t count>
std::optional<Enum> parse_name(std::string_view text, const std::array<std::string_view, count>& names) {
  for (std::size_t i = 0; i < count; ++i) {
    if (equal_ignoring_case(names[i], text)) {
      return static_cast<Enum>(i);
    }
  }
  return std::nullopt;
}

constexpr std::size_t entry_index(Function function, Algorithm algorithm, Protocol protocol) {
  return (index(function) * algorithm_count + index(algorithm)) * protocol_count + index(protocol);
}

// True if NVLink SHARP can do the reduction (NCCL src/include/device.h, ncclNvlsSupported). A mean is a scaled sum for
// floating types and a sum with a division after it for integers; neither has a kernel.
bool nvls_reduces(Dtype dtype, ReduceOp reduce) {
  const bool is_extremum = reduce == ReduceOp::min || reduce == ReduceOp::max;
  switch (dtype) {
    case Dtype::int32:
    case Dtype::int64:
    case Dtype::float16:
    case Dtype::bfloat16:
      return reduce == ReduceOp::sum || is_extremum;
    case Dtype::float32:
    case Dtype::float64:
      return reduce == ReduceOp::sum;
    case Dtype::int8:
    case Dtype::int16:
    case Dtype::uint8:
    case Dtype::boolean:
    case Dtype::complex64:
    case Dtype::complex128:
      return false;
  }
  return false;
}

constexpr int nvls_arity = 32;    // ranks of a node that NVLS joins, except in all_reduce
constexpr int collnet_arity = 9;  // and CollNetDirect

}  // namespace

std::string_view to_string(Algorithm algorithm) { return algorithm_names[index(algorithm)]; }
std::string_view to_string(Protocol protocol) { return protocol_names[index(protocol)]; }
std::string_view to_string(Function function) { return function_names[index(function)]; }

std::optional<Algorithm> parse_algorithm(std::string_view text) {
  return parse_name<Algorithm>(text, algorithm_names);
}
std::optional<Protocol> parse_protocol(std::string_view text) {
  return parse_name<Protocol>(text, protocol_names);
}

namespace {

template <typename Visitor>
void for_each_pair(const Visitor& visit) {
  for (std::size_t algorithm = 0; algorithm < algorithm_count; ++algorithm) {
    for (std::size_t protocol = 0; protocol < protocol_count; ++protocol) {
      visit(static_cast<Algorithm>(algorithm), static_cast<Protocol>(protocol));
    }
  }
}

}  // namespace

Tuner::Tuner(const Communicator& communicator) : communicator_(communicator) {
  expects(communicator.ranks >= 2, "the tuner is asked about two ranks or more");
  expects(communicator.nodes >= 1 && communicator.nodes <= communicator.ranks, "every node holds a rank");
  for (std::size_t f = 0; f < function_count; ++f) {
    const auto function = static_cast<Function>(f);
    for_each_pair([&](Algorithm algorithm, Protocol protocol) {
      entries_[entry_index(function, algorithm, protocol)] =
          model_entry(communicator_, function, algorithm, protocol);
    });
  }
}

const Tuner::Entry& Tuner::entry(Function function, Algorithm algorithm, Protocol protocol) const {
  return entries_[entry_index(function, algorithm, protocol)];
}

// ncclTopoGetAlgoTime, for a call that is not grouped with others.
Candidate Tuner::candidate(const Request& request, Algorithm algorithm, Protocol protocol) const {
  const Entry own = entry_for(request, algorithm, protocol);
  Candidate result{.algorithm = algorithm,
                   .protocol = protocol,
                   .latency = own.latency,
                   .bandwidth = own.bandwidth,
                   .excluded = exclusion(request, algorithm, protocol)};
  if (own.bandwidth <= 0) {
    return result;
  }
  const bool is_all_reduce = request.function == Function::all_reduce;
  const auto units = static_cast<std::uint64_t>(request.bytes >> 6);
  const bool is_corrected =
      algorithm == Algorithm::tree ||
      (algorithm == Algorithm::nvls_tree && communicator_.compute_capability >= 100 &&
       communicator_.cpu != CpuVendor::other && constants_of(communicator_.release).corrects_nvls_tree);
  if (is_corrected && is_all_reduce && units > 0) {
    const auto size = static_cast<std::size_t>(std::bit_width(units) - 1);
    if (size < tree_correction_count) {
      result.bandwidth *= tree_correction[index(protocol)][size];
    }
  }
  const std::int64_t rings = std::int64_t{communicator_.graphs.channels} * communicator_.ranks;
  if (algorithm == Algorithm::ring && protocol == Protocol::simple && is_all_reduce &&
      communicator_.nodes > 1 && rings > 0 && request.bytes / rings >= 64) {
    result.latency *= communicator_.compute_capability >= 80 ? 1.4 : 1.9;  // a plateau seen by NCCL's authors
  }
  result.time = result.latency + static_cast<double>(request.bytes) / (1000 * result.bandwidth);
  return result;
}

Tuner::Entry Tuner::entry_for(const Request& request, Algorithm algorithm, Protocol protocol) const {
  return request.protocol == protocol && protocol == Protocol::ll128
             ? model_entry(communicator_, request.function, algorithm, protocol, true)
             : entry(request.function, algorithm, protocol);
}

std::string_view Tuner::exclusion(const Request& request, Algorithm algorithm, Protocol protocol) const {
  const std::string_view missing = entry_for(request, algorithm, protocol).missing;
  if (!missing.empty()) {
    return missing;
  }
  if ((request.algorithm && *request.algorithm != algorithm) ||
      (request.protocol && *request.protocol != protocol)) {
    return "not among the requested ones";
  }
  const int local = communicator_.ranks_per_node();
  if (is_nvls(algorithm) && request.function != Function::all_gather &&
      !nvls_reduces(request.dtype, request.reduce)) {
    return "NVLink SHARP cannot reduce this type and operation";
  }
  if (is_nvls(algorithm) && request.function != Function::all_reduce && local > nvls_arity) {
    return "NVLS joins at most 32 ranks of a node";
  }
  if (algorithm == Algorithm::collnet_direct && local > collnet_arity) {
    return "CollNetDirect joins at most 9 ranks of a node";
  }
  if (algorithm == Algorithm::pat && request.function == Function::reduce_scatter &&
      request.reduce == ReduceOp::avg) {
    return "PAT cannot reduce to a mean";
  }
  return {};
}

// topoGetAlgoInfo: drop channels, then threads, while a thread would get too few bytes.
int Tuner::channels_for(const Request& request, Algorithm algorithm, Protocol protocol) const {
  const Graphs& graphs = communicator_.graphs;
  if (is_nvls(algorithm)) {
    return graphs.nvls_channels;
  }
  int channels = graphs.channels;
  if (algorithm != Algorithm::ring && algorithm != Algorithm::tree) {
    return channels;  // PAT's number of threads is still 0 here, so nothing is dropped
  }
  const bool is_ring = algorithm == Algorithm::ring;
  const bool is_slow = is_ring && protocol == Protocol::simple &&
                       graphs.ring.channels * graphs.ring.intra_speed <= slow_ring_bandwidth;
  std::int64_t threads = is_slow ? slow_ring_threads : threads_per_channel[index(protocol)];
  const std::int64_t each =
      bytes_per_thread[index(protocol)] * (is_ring && protocol == Protocol::ll ? communicator_.ranks : 1);
  while (request.bytes < channels * threads * each) {
    if (channels >= 2) {
      --channels;
    } else if (threads % 128 == 0) {
      threads /= 2;
    } else {
      break;
    }
  }
  return channels;
}

std::optional<Choice> Tuner::choose(const Request& request) const {
  std::optional<Choice> best;
  for_each_pair([&](Algorithm algorithm, Protocol protocol) {
    const Candidate own = candidate(request, algorithm, protocol);
    if (own.excluded.empty() && (!best || own.time < best->time)) {
      best = Choice{algorithm, protocol, 0, own.time};
    }
  });
  if (best) {
    best->channels = channels_for(request, best->algorithm, best->protocol);
  }
  return best;
}

std::vector<Candidate> Tuner::explain(const Request& request) const {
  std::vector<Candidate> candidates;
  for_each_pair([&](Algorithm algorithm, Protocol protocol) {
    candidates.push_back(candidate(request, algorithm, protocol));
  });
  std::ranges::stable_sort(candidates, [](const Candidate& a, const Candidate& b) {
    const bool a_runs = a.excluded.empty();
    const bool b_runs = b.excluded.empty();
    return a_runs != b_runs ? a_runs : a_runs && a.time < b.time;
  });
  return candidates;
}

}  // namespace rollcall::cost
