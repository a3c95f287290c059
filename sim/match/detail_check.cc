#include "sim/match/detail_check.h"

#include <algorithm>

#include <fmt/format.h>

namespace rollcall::sim {
namespace {

// c10d's OpType names.
std::string_view op_type(OpKind kind) {
  switch (kind) {
    case OpKind::all_reduce:
      return "ALLREDUCE";
    case OpKind::all_reduce_coalesced:
      return "ALLREDUCE_COALESCED";
    case OpKind::broadcast:
      return "BROADCAST";
    case OpKind::reduce:
      return "REDUCE";
    case OpKind::all_gather:
      return "ALLGATHER";
    case OpKind::all_gather_into_tensor:
      return "_ALLGATHER_BASE";
    case OpKind::gather:
      return "GATHER";
    case OpKind::scatter:
      return "SCATTER";
    case OpKind::reduce_scatter:
      return "REDUCE_SCATTER";
    case OpKind::reduce_scatter_tensor:
      return "_REDUCE_SCATTER_BASE";
    case OpKind::all_to_all:
      return "ALLTOALL";
    case OpKind::all_to_all_single:
      return "ALLTOALL_BASE";
    case OpKind::barrier:
      return "BARRIER";
    case OpKind::send:
      return "SEND";
    case OpKind::recv:
      return "RECV";
    case OpKind::monitored_barrier:
    case OpKind::new_group:
    case OpKind::split_group:
    case OpKind::destroy_process_group:
    case OpKind::batch_isend_irecv:
    case OpKind::store_get:
    case OpKind::store_wait:
      break;  // not compared
  }
  return "UNKNOWN";
}

Shape shape_of(const Op& op) {
  return op.tensors.input != nullptr ? op.tensors.input->shape : Shape({op.numel});
}

std::string fingerprint(const Op& op) {
  if (!has_tensor(op.kind)) {
    return fmt::format("CollectiveFingerPrint(OpType={})", op_type(op.kind));
  }
  return fmt::format(
      "CollectiveFingerPrint(OpType={}, TensorShape={}, TensorDtypes={}, "
      "TensorDeviceTypes=TensorOptions(dtype=float "
      "(default), device={}, layout=Strided (default), requires_grad=false (default), pinned_memory=false "
      "(default), "
      "memory_format=(nullopt)))",
      op_type(op.kind), to_string(shape_of(op)), scalar_type_name(op.dtype),
      op.device.type == DeviceType::cuda ? "cuda" : "cpu");
}

}  // namespace

std::vector<std::string> detail_mismatch(const check::GroupMatcher& matcher, const check::Slot& slot) {
  std::vector<std::string> prints;
  for (Rank rank = 0; rank < matcher.size(); ++rank) {
    prints.push_back(fingerprint(matcher.op_of(slot, rank)));
  }
  if (std::ranges::all_of(prints, [&](const std::string& print) { return print == prints.front(); })) {
    return {};
  }
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < prints.size(); ++rank) {
    const auto other =
        std::ranges::find_if(prints, [&](const std::string& print) { return print != prints[rank]; });
    texts.push_back(
        fmt::format("Detected mismatch between collectives on ranks. Rank {} is running collective: {}, but "
                    "Rank {} is running "
                    "collective: {}.",
                    rank, prints[rank], other - prints.begin(), *other));
  }
  return texts;
}

}  // namespace rollcall::sim
