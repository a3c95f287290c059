#include "sim/match/detail_check.h"

#include <algorithm>

#include <fmt/core.h>

namespace rollcall::sim {
namespace {

std::string_view op_type(OpKind kind) {
  const std::string_view known = row_of(kind).op_type;
  return known.empty() ? "UNKNOWN" : known;
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
