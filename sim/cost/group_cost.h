#pragma once

// The cost of a call in one process group: from NCCL's tuner for the collectives it has, from our own model for the
// rest, and for both the time to expect on a real machine.

#include <optional>

#include "sim/base/time.h"
#include "sim/cost/expectation.h"
#include "sim/cost/message_model.h"
#include "sim/cost/topology.h"
#include "sim/cost/tuner.h"

namespace rollcall::cost {

// A call as nccl-tests would describe it.
struct Call {
  OpKind kind = OpKind::all_reduce;
  // The larger of what one rank sends and what it receives in the whole call: the result of an
  // all_gather, the input of a reduce_scatter, a message of send and recv.
  std::int64_t bytes = 0;
  Dtype dtype = Dtype::float32;
  ReduceOp reduce = ReduceOp::sum;
  std::optional<Algorithm> algorithm{};  // NCCL_ALGO
  std::optional<Protocol> protocol{};    // NCCL_PROTO
  bool same_node = true;                 // send and recv: where the peer is
};

// `bytes` of a Call, from one rank's input (torch's arguments).
std::int64_t bytes_of_call(OpKind kind, std::int64_t input_bytes, int members);

struct Prediction {
  bool by_nccl = true;  // false: our model, NCCL has none
  double time = 0;      // microseconds, as the model says
  double fitted = 0;    // microseconds to expect, with what measurements add
  double low = 0;       // nine of ten measurements lie between these two
  double high = 0;
  double physical = 0;         // the expectation before residuals
  double hops = 0;             // the part of it that residuals do not apply to
  double base = 0;             // what corrections are relative to: the expectation with half the residuals
  bool is_calibrated = false;  // rows of the machine itself were used
  double port_share = 0;  // how much of the members' ports, and of their NICs, the call needs while it takes
  double nic_share = 0;   // `fitted`: others get the rest
  std::string_view algorithm;  // "Ring"; "P2P" for ours
  Protocol protocol = Protocol::simple;
  int channels = 0;
};

// The expected time under a factor from residuals.
constexpr double with_factor(const Prediction& prediction, double factor) {
  return prediction.hops + (prediction.physical - prediction.hops) * factor;
}

// The only conversion from the tables' microseconds to simulated time: to the nearest nanosecond.
Duration to_duration(double microseconds);

class GroupCost {
 public:
  explicit GroupCost(const Communicator& communicator);

  // Empty when the call's own algorithm and protocol exclude everything.
  std::optional<Prediction> predict(const Call& call) const;

  const Communicator& communicator() const { return communicator_; }
  // Null for a group of one: NCCL's tuner is not asked then.
  const Tuner* tuner() const { return tuner_ ? &*tuner_ : nullptr; }

 private:
  Prediction ours(const MessageTime& message, const Call& call) const;
  // `at_ports`, `at_nics`: how long the bytes take there, in microseconds. No machine is faster.
  void expect(Prediction& prediction, double factor, double at_ports, double at_nics, const Call& call) const;

  Communicator communicator_;
  std::optional<Tuner> tuner_;
  std::optional<Expectation> expectation_;
};

// NCCL's function for a torch call. Empty for those made of sends and receives.
std::optional<Function> nccl_function(OpKind kind);

// busbw = algbw * factor, so that it can be compared with the links' speed. nccl-tests,
// doc/PERFORMANCE.md: an all_reduce moves each byte 2 (n-1)/n times over every link.
double busbw_factor(OpKind kind, int members);

}  // namespace rollcall::cost
