#include "sim/match/detail_check.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "sim/base/expects.h"
#include "sim/torch/torch_traits.h"

namespace rollcall::sim {
namespace {

constexpr std::string_view device_text =
    "TensorOptions(dtype=float (default), device={}, layout=Strided (default), requires_grad=false "
    "(default), pinned_memory=false (default), memory_format=(nullopt))";

// OpType (torch/csrc/distributed/c10d/Work.hpp), by number.
constexpr std::array<std::string_view, 17> op_types{"BROADCAST",
                                                    "ALLREDUCE",
                                                    "ALLREDUCE_COALESCED",
                                                    "REDUCE",
                                                    "ALLGATHER",
                                                    "_ALLGATHER_BASE",
                                                    "ALLGATHER_COALESCED",
                                                    "GATHER",
                                                    "SCATTER",
                                                    "REDUCE_SCATTER",
                                                    "ALLTOALL_BASE",
                                                    "ALLTOALL",
                                                    "SEND",
                                                    "RECV",
                                                    "RECVANYSOURCE",
                                                    "BARRIER",
                                                    "_REDUCE_SCATTER_BASE"};

// The properties of a call that are compared.
struct Fingerprint {
  std::string op_type;
  std::int64_t number = 0;
  std::string sizes{};   // empty without a tensor
  std::string dtype{};   // likewise
  std::string device{};  // likewise
  std::size_t dims = 0;
  bool has_tensor = false;

  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

std::vector<std::int64_t> sizes_of(const Op& op) {
  if (op.tensors.input == nullptr) {
    return {op.numel};
  }
  const auto sizes = op.tensors.input->shape.sizes();
  return {sizes.begin(), sizes.end()};
}

Fingerprint fingerprint(const Op& op, std::int64_t number) {
  const std::string_view known = row_of(op.kind).op_type;
  Fingerprint print{.op_type = std::string(known.empty() ? "UNKNOWN" : known),
                    .number = number,
                    .has_tensor = has_tensor(op.kind)};
  if (print.has_tensor) {
    const std::vector<std::int64_t> sizes = sizes_of(op);
    print.dims = sizes.size();
    print.sizes = fmt::format("{}", fmt::join(sizes, ", "));
    print.dtype = scalar_type_name(op.dtype);
    print.device =
        fmt::format(fmt::runtime(device_text), op.device.type == DeviceType::cuda ? "cuda" : "cpu");
  }
  return print;
}

// Elements of the tensor that ranks exchange: the operation, since 2.x its number, the number of tensors, and for each
// tensor its dtype, device, number of dimensions and sizes.
std::size_t serialized_length(const Fingerprint& print, const TorchTraits& torch) {
  const std::size_t head = torch.fingerprints_have_numbers ? 3 : 2;
  return head + (print.has_tensor ? 3 + print.dims : 0);
}

// How a rank misreads another's fingerprint of a different length: the length, which is compared first, is read as if
// it were the fingerprint.
Fingerprint misread(const Fingerprint& print, const TorchTraits& torch) {
  const std::size_t length = serialized_length(print, torch);
  return {.op_type = std::string(length < op_types.size() ? op_types[length] : "UNKNOWN")};
}

std::string to_string(const Fingerprint& print, const TorchTraits& torch) {
  const std::string number =
      torch.fingerprints_have_numbers ? fmt::format("SequenceNumber={}", print.number) : "";
  const bool lists_tensors = print.has_tensor || (number.empty() && print.op_type != "BARRIER");
  if (!lists_tensors) {
    return fmt::format("CollectiveFingerPrint({}OpType={})", number, print.op_type);
  }
  return fmt::format(
      "CollectiveFingerPrint({}{}OpType={}, TensorShape=[{}], TensorDtypes={}, TensorDeviceTypes={})", number,
      number.empty() ? "" : ", ", print.op_type, print.sizes, print.dtype, print.device);
}

// "4 2", as C++ writes a list.
std::string spaced(std::string sizes) {
  std::erase(sizes, ',');
  return sizes;
}

// ProcessGroupWrapper.cpp, compute_collective_diff.
std::string differences(const Fingerprint& own, const Fingerprint& other) {
  std::string text = "Collectives differ in the following aspects: ";
  const auto add = [&](std::string_view what, const std::string& mine, const std::string& theirs) {
    if (mine != theirs) {
      text += fmt::format("{}: {}vs {}", what, mine, theirs);
    }
  };
  add("\t Sequence number", std::to_string(own.number), std::to_string(other.number));
  add("  Op type", own.op_type, other.op_type);
  add("  Tensor Tensor shapes", spaced(own.sizes), spaced(other.sizes));
  add("  Tensor Tensor dtypes", own.dtype, other.dtype);
  add("  Tensor Tensor devices", own.device, other.device);
  return text;
}

}  // namespace

std::vector<std::string> detail_mismatch(const check::GroupMatcher& matcher, const check::Slot& slot,
                                         const TorchTraits& torch) {
  std::vector<Fingerprint> prints;
  for (Rank rank = 0; rank < matcher.size(); ++rank) {
    prints.push_back(fingerprint(matcher.op_of(slot, rank), slot.seq));
  }
  if (std::ranges::all_of(prints, [&](const Fingerprint& print) { return print == prints.front(); })) {
    return {};
  }
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < prints.size(); ++rank) {
    const Fingerprint& own = prints[rank];
    const auto is_longer = [&](const Fingerprint& print) {
      return serialized_length(print, torch) != serialized_length(own, torch);
    };
    auto other = std::ranges::find_if(prints, is_longer);
    const bool is_misread = other != prints.end();
    if (!is_misread) {
      other = std::ranges::find_if(prints, [&](const Fingerprint& print) { return !(print == own); });
    }
    expects(other != prints.end(), "fingerprints that differ, differ from every rank's");
    const Fingerprint read = is_misread ? misread(*other, torch) : *other;
    texts.push_back(
        fmt::format("Detected mismatch between collectives on ranks. Rank {} is running collective: {}, but "
                    "Rank {} is running collective: {}.{}",
                    rank, to_string(own, torch), other - prints.begin(), to_string(read, torch),
                    torch.fingerprints_have_numbers ? differences(own, read) : ""));
  }
  return texts;
}

}  // namespace rollcall::sim
