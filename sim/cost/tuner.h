#pragma once

// NCCL's tuner: how long each algorithm and protocol would take, which one it picks, and with how many channels. Based
// on NCCL 2.28.9 and, where other releases differ, 2.27.7, 2.29.3, 2.29.7 and 2.30.7: src/graph/tuning.cc
// (ncclTopoTuneModel, ncclTopoGetAlgoTime) and src/enqueue.cc (updateCollCostTable, topoGetAlgoInfo).
//
// These are NCCL's expectations, not measurements: no launch cost, no congestion. What measurements add is in
// residuals.h and nowhere else.

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/cost/topology.h"

namespace rollcall::cost {

// In the tuner's order, which decides ties.
enum class Algorithm : std::uint8_t { tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat };
enum class Protocol : std::uint8_t { ll, ll128, simple };
enum class Function : std::uint8_t { broadcast, reduce, all_gather, reduce_scatter, all_reduce };
inline constexpr std::size_t algorithm_count = 7;
inline constexpr std::size_t protocol_count = 3;
inline constexpr std::size_t function_count = 5;

std::string_view to_string(Algorithm algorithm);                  // NCCL's name: "NVLSTree"
std::string_view to_string(Protocol protocol);                    // "LL128"
std::string_view to_string(Function function);                    // "AllReduce"
std::optional<Algorithm> parse_algorithm(std::string_view text);  // in any case
std::optional<Protocol> parse_protocol(std::string_view text);

// A query to the tuner.
struct Request {
  Function function = Function::all_reduce;
  std::int64_t bytes = 0;  // the larger of what one rank sends and what it receives, in total
  Dtype dtype = Dtype::float32;
  ReduceOp reduce = ReduceOp::sum;
  std::optional<Algorithm> algorithm{};  // NCCL_ALGO
  std::optional<Protocol> protocol{};    // NCCL_PROTO
};

struct Choice {
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  int channels = 0;  // at most; small messages use fewer of them
  double time = 0;   // microseconds
};

// One row of an explanation.
struct Candidate {
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  double latency = 0;         // microseconds, corrections for this size included
  double bandwidth = 0;       // GB/s
  double time = 0;            // microseconds
  std::string_view excluded;  // why it cannot be chosen; empty: it can
};

class Tuner {
 public:
  explicit Tuner(const Communicator& communicator);

  struct Entry {
    double latency = 0;        // microseconds
    double bandwidth = 0;      // algorithm bandwidth, GB/s; 0: not available
    std::string_view missing;  // why it is not available; empty: it is
  };
  // The tables that NCCL prints with NCCL_DEBUG_SUBSYS=TUNING.
  const Entry& entry(Function function, Algorithm algorithm, Protocol protocol) const;

  // Empty when the request's own algorithm and protocol exclude everything.
  std::optional<Choice> choose(const Request& request) const;

  // All pairs of algorithm and protocol, those that are possible for the function first, by time.
  std::vector<Candidate> explain(const Request& request) const;

  const Communicator& communicator() const { return communicator_; }

 private:
  // The table's entry, unless the request forces a protocol that NCCL would not use.
  Entry entry_for(const Request& request, Algorithm algorithm, Protocol protocol) const;
  Candidate candidate(const Request& request, Algorithm algorithm, Protocol protocol) const;
  std::string_view exclusion(const Request& request, Algorithm algorithm, Protocol protocol) const;
  int channels_for(const Request& request, Algorithm algorithm, Protocol protocol) const;

  Communicator communicator_;
  std::array<Entry, function_count * algorithm_count * protocol_count> entries_{};
};

}  // namespace rollcall::cost
