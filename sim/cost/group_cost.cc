#include "sim/cost/group_cost.h"

#include <algorithm>
#include <cmath>

#include "sim/base/expects.h"
#include "sim/cost/message_model.h"
#include "sim/cost/residuals.h"

namespace rollcall::cost {

namespace {

// NCCL's tuner is not asked about a group of one: its call is a copy on the GPU. What remains is the
// launch, for which this is OUR figure.
constexpr double one_rank_time = 5;

// A hundred years: two of them still fit a Duration, and any limit ends a run long before.
constexpr double microseconds_max = 3e15;

Prediction ours(const MessageTime& message) {
  return {.by_nccl = false,
          .time = message.time,
          .fitted = message.time,
          .algorithm = "P2P",
          .protocol = message.protocol,
          .channels = message.channels};
}

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
  }
}

std::optional<Prediction> GroupCost::predict(const Call& call) const {
  if (!tuner_) {
    return Prediction{.by_nccl = false, .time = one_rank_time, .fitted = one_rank_time, .algorithm = "None"};
  }
  if (is_point_to_point(call.kind)) {
    return ours(message_time(communicator_, call.bytes, call.same_node));
  }
  const auto function = nccl_function(call.kind);
  if (!function) {
    return ours(has_root(call.kind) ? one_to_all_time(communicator_, call.bytes)
                                    : all_to_all_time(communicator_, call.bytes));
  }
  const auto choice = tuner_->choose({.function = *function,
                                      .bytes = call.bytes,
                                      .dtype = call.dtype,
                                      .reduce = call.reduce,
                                      .algorithm = call.algorithm,
                                      .protocol = call.protocol});
  if (!choice) {
    return std::nullopt;
  }
  const bool has_nvlink = communicator_.links.nvlink != Links::NvLink::none;
  const double factor = residuals_of(communicator_.compute_capability, has_nvlink).at(call.bytes);
  return Prediction{.time = choice->time,
                    .fitted = choice->time * factor,
                    .algorithm = to_string(choice->algorithm),
                    .protocol = choice->protocol,
                    .channels = choice->channels};
}

}  // namespace rollcall::cost
