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
  switch (kind) {
    case OpKind::all_gather:
    case OpKind::all_gather_into_tensor:
    case OpKind::gather: {
      std::int64_t bytes = 0;
      return __builtin_mul_overflow(input_bytes, members, &bytes) ? INT64_MAX : bytes;
    }
    case OpKind::barrier:
    case OpKind::monitored_barrier:
      return 4;  // torch's barrier is an all_reduce of one float (ProcessGroupNCCL::barrier)
    case OpKind::all_reduce:
    case OpKind::all_reduce_coalesced:
    case OpKind::broadcast:
    case OpKind::reduce:
    case OpKind::scatter:
    case OpKind::reduce_scatter:
    case OpKind::reduce_scatter_tensor:
    case OpKind::all_to_all:
    case OpKind::all_to_all_single:
    case OpKind::send:
    case OpKind::recv:
    case OpKind::new_group:
    case OpKind::split_group:
    case OpKind::destroy_process_group:
    case OpKind::batch_isend_irecv:
    case OpKind::store_get:
    case OpKind::store_wait:
      return input_bytes;
  }
  return input_bytes;
}

Duration to_duration(double microseconds) {
  expects(microseconds >= 0, "a predicted time is not negative");
  return static_cast<Duration>(std::floor(std::min(microseconds, microseconds_max) * 1000 + 0.5));
}

std::optional<Function> nccl_function(OpKind kind) {
  switch (kind) {
    case OpKind::all_reduce:
    case OpKind::all_reduce_coalesced:
    case OpKind::barrier:
    case OpKind::monitored_barrier:
      return Function::all_reduce;
    case OpKind::broadcast:
      return Function::broadcast;
    case OpKind::reduce:
      return Function::reduce;
    case OpKind::all_gather:
    case OpKind::all_gather_into_tensor:
      return Function::all_gather;
    case OpKind::reduce_scatter:
    case OpKind::reduce_scatter_tensor:
      return Function::reduce_scatter;
    case OpKind::gather:
    case OpKind::scatter:
    case OpKind::all_to_all:
    case OpKind::all_to_all_single:
    case OpKind::send:
    case OpKind::recv:
    case OpKind::new_group:
    case OpKind::split_group:
    case OpKind::destroy_process_group:
    case OpKind::batch_isend_irecv:
    case OpKind::store_get:
    case OpKind::store_wait:
      return std::nullopt;
  }
  return std::nullopt;
}

double busbw_factor(OpKind kind, int members) {
  const double others = static_cast<double>(members - 1) / members;
  switch (kind) {
    case OpKind::all_reduce:
    case OpKind::all_reduce_coalesced:
    case OpKind::barrier:
    case OpKind::monitored_barrier:
      return 2 * others;
    case OpKind::all_gather:
    case OpKind::all_gather_into_tensor:
    case OpKind::reduce_scatter:
    case OpKind::reduce_scatter_tensor:
    case OpKind::all_to_all:
    case OpKind::all_to_all_single:
    case OpKind::gather:
    case OpKind::scatter:
      return others;
    case OpKind::broadcast:
    case OpKind::reduce:
    case OpKind::send:
    case OpKind::recv:
    case OpKind::new_group:
    case OpKind::split_group:
    case OpKind::destroy_process_group:
    case OpKind::batch_isend_irecv:
    case OpKind::store_get:
    case OpKind::store_wait:
      return 1;
  }
  return 1;
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
  if (call.kind == OpKind::send || call.kind == OpKind::recv) {
    return ours(message_time(communicator_, call.bytes, call.same_node));
  }
  const auto function = nccl_function(call.kind);
  if (!function) {
    const bool is_one_sided = call.kind == OpKind::gather || call.kind == OpKind::scatter;
    return ours(is_one_sided ? one_to_all_time(communicator_, call.bytes)
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
