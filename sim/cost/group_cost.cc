#include "sim/cost/group_cost.h"

#include <algorithm>
#include <cmath>

#include "sim/base/expects.h"
#include "sim/cost/residuals.h"
#include "sim/cost/symmetric_kernels.h"

namespace rollcall::cost {

namespace {

// NCCL's tuner is not asked about a group of one: its call is a copy on the GPU. What remains is the
// launch, for which this is OUR figure.
constexpr double one_rank_time = 5;

// How much longer messages take over Slingshot than its NICs would need: a100_mesh_2x4_polaris_alltoall, the only table
// with such messages.
constexpr double slingshot_messages = 1.9;

// A hundred years: two of them still fit a Duration, and any limit ends a run long before.
constexpr double microseconds_max = 3e15;

}  // namespace

std::int64_t bytes_of_call(OpKind kind, std::int64_t input_bytes, int members) {
  if (!has_tensor(kind) && row_of(kind).family == Family::collective) {
    return 4;  // torch's barrier is an all_reduce of one float (ProcessGroupNCCL::barrier)
  }
  std::int64_t bytes = input_bytes;
  if (row_of(kind).sizes == Sizes::gathered && __builtin_mul_overflow(input_bytes, members, &bytes)) {
    return INT64_MAX;
  }
  return bytes;
}

Duration to_duration(double microseconds) {
  expects(microseconds >= 0, "a predicted time is not negative");
  return static_cast<Duration>(std::floor(std::min(microseconds, microseconds_max) * 1000 + 0.5));
}

std::optional<Function> nccl_function(OpKind kind) {
  switch (row_of(kind).nccl) {
    case NcclFunction::all_reduce:
      return Function::all_reduce;
    case NcclFunction::reduce:
      return Function::reduce;
    case NcclFunction::broadcast:
      return Function::broadcast;
    case NcclFunction::all_gather:
      return Function::all_gather;
    case NcclFunction::reduce_scatter:
      return Function::reduce_scatter;
    case NcclFunction::none:
      // A monitored_barrier costs what a barrier does.
      return row_of(kind).family == Family::collective ? std::optional(Function::all_reduce) : std::nullopt;
    case NcclFunction::messages:
      break;
  }
  return std::nullopt;
}

double busbw_factor(OpKind kind, int members) {
  const double others = static_cast<double>(members - 1) / members;
  if (nccl_function(kind) == Function::all_reduce) {
    return 2 * others;
  }
  return row_of(kind).sizes == Sizes::equal ? 1 : others;
}

GroupCost::GroupCost(const Communicator& communicator) : communicator_(communicator) {
  if (communicator.ranks >= 2) {
    tuner_.emplace(communicator);
    expectation_.emplace(communicator);
  }
}

// The interval is proportional to the expected time, above and below.
void GroupCost::expect(Prediction& prediction, double factor, double at_ports, double at_nics,
                       const Call& call) const {
  const double least = std::max(at_ports, at_nics);
  const double floor = std::max(least, launch_floor(communicator_.launch));
  prediction.base = std::max(with_factor(prediction, std::sqrt(factor)), floor);
  prediction.fitted = std::max(with_factor(prediction, factor), floor);
  const Correction* correction =
      correction_for(communicator_.corrections, call.kind, communicator_.nodes > 1);
  if (correction != nullptr) {
    prediction.fitted = std::max(correction->apply(prediction.base, call.bytes), least);
    prediction.is_calibrated = correction->kind == call.kind;
  }
  const Interval interval = interval_at(call.bytes, prediction.is_calibrated);
  prediction.low = std::max(prediction.fitted * interval.low, least);
  prediction.high = prediction.fitted * interval.high;
  prediction.port_share = at_ports / prediction.fitted;
  prediction.nic_share = at_nics / prediction.fitted;
}

Prediction GroupCost::ours(const MessageTime& message, const Call& call) const {
  Prediction prediction{.by_nccl = false,
                        .time = message.time,
                        .algorithm = "P2P",
                        .protocol = message.protocol,
                        .channels = message.channels};
  const bool goes_out = communicator_.nodes > 1 && !(is_point_to_point(call.kind) && call.same_node);
  prediction.hops = goes_out ? extra_hop(communicator_.links.network) : 0;
  const bool is_slingshot = goes_out && communicator_.links.network == Network::slingshot;
  prediction.physical = message.time * (is_slingshot ? slingshot_messages : 1) + prediction.hops;
  const Traits traits = goes_out ? network_traits_of(communicator_) : Traits{};
  expect(prediction, factor_of(fitted_residuals(), traits, call.bytes), message.at_ports, message.at_nics,
         call);
  return prediction;
}

std::optional<Prediction> GroupCost::predict(const Call& call) const {
  if (!tuner_) {
    return Prediction{.by_nccl = false,
                      .time = one_rank_time,
                      .fitted = one_rank_time,
                      .low = one_rank_time,
                      .high = one_rank_time,
                      .physical = one_rank_time,
                      .base = one_rank_time,
                      .algorithm = "None"};
  }
  if (is_point_to_point(call.kind)) {
    return ours(message_time(communicator_, call.bytes, call.same_node), call);
  }
  const auto function = nccl_function(call.kind);
  if (!function) {
    return ours(has_root(call.kind) ? one_to_all_time(communicator_, call.bytes)
                                    : all_to_all_time(communicator_, call.bytes),
                call);
  }
  const Request request{.function = *function,
                        .bytes = call.bytes,
                        .dtype = call.dtype,
                        .reduce = call.reduce,
                        .algorithm = call.algorithm,
                        .protocol = call.protocol};
  const auto choice = tuner_->choose(request);
  if (!choice) {
    return std::nullopt;
  }
  Prediction prediction{.time = choice->time,
                        .algorithm = to_string(choice->algorithm),
                        .protocol = choice->protocol,
                        .channels = choice->channels};
  const Expectation::Time expected = expectation_->time(request, *choice);
  prediction.physical = expected.total;
  prediction.hops = expected.hops;
  double factor = factor_of(fitted_residuals(), traits_of(communicator_, choice->algorithm), call.bytes);
  if (communicator_.launch.symmetric_memory) {
    if (const auto symmetric = choose_symmetric(communicator_, request)) {
      prediction.time = symmetric->time;
      prediction.algorithm = symmetric->kernel;
      prediction.protocol = symmetric->is_ll ? Protocol::ll : Protocol::simple;
      prediction.channels = symmetric->blocks;
      prediction.physical = expectation_->symmetric_time(request, *symmetric);
      prediction.hops = 0;
      factor = 1;
    }
  }
  const Carried carried = expectation_->carried(*function, choice->algorithm);
  const double kilobytes = static_cast<double>(call.bytes) / 1000;
  expect(prediction, factor, kilobytes / carried.ports, kilobytes / carried.nics, call);
  return prediction;
}

}  // namespace rollcall::cost
