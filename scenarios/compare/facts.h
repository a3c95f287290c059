#pragma once

// Facts: what a run claims, as values that can be compared with those of another run of the same program. A
// simulation has them, a real run has them, and a *.result.json stores those of a real run for later.

#include <cstdint>
#include <string>
#include <vector>

#include "real/launch/launch.h"
#include "real/rank/record.h"
#include "sim/report/report.h"

namespace rollcall::compare {

// One call of one rank.
struct CallFact {
  std::string call;          // "all_reduce(numel=4, float32, SUM) on world"
  std::string outcome;       // "completed", "completed, from 2" for any source, "pending", or the error
  std::uint64_t digest = 0;  // of its results; 0 if it has none
  // The results may depend on an order that the backend chooses: float additions in their last bits, a
  // receive
  // from any source entirely.
  bool order_matters = false;

  friend bool operator==(const CallFact&, const CallFact&) = default;
};

struct RankFact {
  std::string state;  // "finished", "waiting in all_reduce #5 on world", "raised", "crashed"
  std::string error;  // raised, crashed: the error, without addresses and source lines of the library
  std::vector<std::string> output;
  std::vector<CallFact> calls;
};

// One kind of call, and how long each call took on a GPU.
struct CallTimes {
  OpKind kind = OpKind::all_reduce;
  Dtype dtype = Dtype::float32;
  ReduceOp reduce = ReduceOp::sum;
  std::int64_t bytes = 0;  // as in cost::Call
  int ranks = 0;
  int nodes = 1;
  std::vector<double> times;  // microseconds

  friend bool operator==(const CallTimes&, const CallTimes&) = default;
};

inline constexpr std::string_view shared_gpu = "several ranks shared a GPU";  // Facts::no_times

struct Facts {
  std::string scenario;
  std::string backend;
  std::string verdict;  // "deadlock"
  FindingKind kind = FindingKind::ok;
  std::string culprits;  // "0"; "none"
  std::string place;     // "all_reduce #5 on world, ranks 1-3 there, rank 0 missing"; may be empty
  bool stopped = false;  // by a deadline: the rest of the run is unknown
  bool has_calls = true;
  std::vector<RankFact> ranks;
  std::vector<CallTimes> times{};  // of a real run
  std::string no_times{};          // why the times are meaningless; empty if they are not
};

// `logs` by rank, as real::Recorder writes them. Without logs, the calls are unknown.
Facts facts_of(const Report& report, const std::vector<std::vector<real::Record>>& logs);

// The facts of a real run, with times if its calls ran on GPUs.
Facts facts_of_run(const real::Run& run, Rank ranks_per_node = 8);

// The text of an error in a form that is the same in two builds of one library: no path and line of its
// source, no
// addresses of sockets, no ports.
std::string normalized_error(std::string text);

}  // namespace rollcall::compare
