#include "sim/c10d/arguments.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>

#include <fmt/format.h>

#include "sim/c10d/gloo_admission.h"
#include "sim/c10d/groups.h"
#include "sim/c10d/observer.h"
#include "sim/c10d/rank_context.h"
#include "sim/torch/torch_traits.h"

namespace rollcall {

void require_function(std::string_view name) {
  if (!has_function(this_rank().torch->release, name)) {
    raise(Error("AttributeError", fmt::format("module 'torch.distributed' has no attribute '{}'", name)), {});
  }
}

void refuse_use(const std::string& text) { raise(Error(this_rank().torch->usage_error, text), {}); }

namespace {

[[noreturn]] void refuse_argument(const char* parameter, const char* expected, const char* given) {
  const TorchTraits& torch = *this_rank().torch;
  raise(Error(torch.argument_type_error,
              fmt::format(fmt::runtime(torch.not_a_tensor), parameter, expected, given)),
        {});
}

}  // namespace

void refuse_missing_tensor(const char* parameter) {
  refuse_argument(parameter, "torch.Tensor", "<class 'NoneType'>");
}

void check_tensor_list(const TensorList& tensors, const char* parameter) {
  if (!std::ranges::all_of(tensors, [](const Tensor& tensor) { return static_cast<bool>(tensor); })) {
    refuse_argument(parameter, "List[torch.Tensor]", "<class 'list'>");
  }
}

void check_same_dtype(std::span<const Tensor> tensors, std::span<const Tensor> more) {
  const Tensor* first = nullptr;
  for (const std::span<const Tensor> list : {tensors, more}) {
    for (const Tensor& tensor : list) {
      first = first == nullptr ? &tensor : first;
      if (tensor.storage()->dtype != first->storage()->dtype) {  // complex and its element type may mix
        refuse_use(fmt::format("Invalid usage of tensors with different dtypesFound torch.{} and  torch.{}",
                               to_string(first->dtype()), to_string(tensor.dtype())));
      }
    }
  }
}

Rank root_in_subgroup(const ProcessGroup& group, Rank global, OpKind kind, const Site& site) {
  detail::check_registered(group);
  const Rank root = group.members().rank_of(global);
  if (root < 0) {
    Observation observation{.kind = Observation::Kind::foreign_root, .root = global};
    observation.op.kind = kind;
    observation.op.group = group.id();
    observation.op.rank = group.rank();
    observation.op.scope = this_rank().scope;
    observation.op.site = site;
    this_rank().backend->observer().observe(observation);
    refuse_use(fmt::format("Global rank {} is not part of group {}", global, group.name()));
  }
  return root;
}

void warn_not_in_group(std::string_view function) {
  warn(fmt::format("Running {} on global rank {} which does not belong to the given group.", function,
                   this_rank().rank));
}

void check_root_list(bool has_list, bool is_root, const char* parameter, const char* side) {
  if (is_root && !has_list) {
    throw ValueError(fmt::format("Argument ``{}`` must be specified on {} rank.", parameter, side));
  }
  if (!is_root && has_list) {
    throw ValueError(fmt::format("Argument ``{}`` must NOT be specified on non-{} ranks.", parameter, side));
  }
}

namespace {

// ---- Facts about an operation, the same for every backend ----

std::size_t length(const TensorList* list) { return list == nullptr ? 0 : list->size(); }

bool root_exists(const Op& op, Rank size) { return op.root >= 0 && op.root < size; }

// The index of the first tensor of the list that does not have `shape`.
std::optional<std::size_t> misshapen(const TensorList& list, const Shape& shape) {
  const auto found =
      std::ranges::find_if(list, [&](const Tensor& tensor) { return !(tensor.shape() == shape); });
  return found == list.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - list.begin()));
}

bool all_alike(const TensorList& list) { return list.empty() || !misshapen(list, list.front().shape()); }

// The tensor that a list's members are compared with, where torch compares.
const Storage& single_of(const Op& op) {
  return op.tensors.input != nullptr ? *op.tensors.input : *op.tensors.output;
}

const TensorList* list_of(const Op& op) {
  return op.tensors.outputs != nullptr ? op.tensors.outputs : op.tensors.inputs;
}

std::int64_t rows_of(const Storage& tensor) {
  return tensor.shape.sizes().empty() ? tensor.numel : tensor.shape.sizes().front();
}

// Utils.hpp, checkSplitSizes and computeLengthsAndOffsets.
const char* split_error(const std::vector<std::int64_t>& splits, const Storage& tensor, Rank size) {
  if (splits.empty()) {
    return rows_of(tensor) % size == 0 ? nullptr : "Tensor's dim 0 does not divide equally across group size";
  }
  if (splits.size() != static_cast<std::size_t>(size)) {
    return "Number of tensor splits not equal to group size";
  }
  if (std::accumulate(splits.begin(), splits.end(), std::int64_t{0}) != rows_of(tensor)) {
    return "Split sizes doesn't match total dim 0 size";
  }
  return *std::ranges::min_element(splits) < 0 ? "Length or offset larger than INT_MAX not supported"
                                               : nullptr;
}

// The error of an all_to_all_single that names its splits; null if there is none.
const char* split_error(const Op& op, Rank size) {
  const SplitSizes& splits = *op.tensors.splits;
  const char* error = split_error(splits.input, *op.tensors.input, size);
  return error != nullptr ? error : split_error(splits.output, *op.tensors.output, size);
}

bool flat_sizes_fit(const Op& op, Rank size) {
  const bool gathers = row_of(op.kind).sizes == Sizes::gathered;
  const std::int64_t part = gathers ? op.tensors.input->numel : op.tensors.output->numel;
  const std::int64_t whole = gathers ? op.tensors.output->numel : op.tensors.input->numel;
  return whole == part * size;
}

// True if one of the call's arguments is a list with a tensor for each member.
bool takes_list(const OpRow& row) {
  return row.given >= Tensors::per_member || row.filled >= Tensors::per_member;
}

// True if this call does without that list: on a rank other than the root, or because the places lie end to end in one
// tensor, whose size all_gather_flat has checked.
bool has_no_list(const Op& op) { return has_root(op.kind) ? op.rank != op.root : list_of(op) == nullptr; }

// at::chunk(whole, size): how Gloo splits a flat tensor. Parts by rank; fewer than `size` if the rows run out.
std::vector<Shape> chunks_of(const Shape& whole, Rank size) {
  std::vector<Shape> chunks;
  if (whole.sizes().empty()) {
    return chunks;
  }
  std::vector<std::int64_t> sizes(whole.sizes().begin(), whole.sizes().end());
  const std::int64_t rows = sizes.front();
  const std::int64_t step = std::max<std::int64_t>((rows + size - 1) / size, 1);
  for (std::int64_t row = 0; row < rows; row += step) {
    sizes.front() = std::min(step, rows - row);
    chunks.emplace_back(sizes);
  }
  return chunks;
}

// True if Gloo's part of a flat tensor has, for each rank, the shape of what the rank gives or gets.
bool flat_shapes_fit(const Op& op, Rank size) {
  const bool gathers = row_of(op.kind).sizes == Sizes::gathered;
  const Shape& part = gathers ? op.tensors.input->shape : op.tensors.output->shape;
  const Shape& whole = gathers ? op.tensors.output->shape : op.tensors.input->shape;
  const auto rest = [](const Shape& shape) { return shape.sizes().subspan(shape.sizes().empty() ? 0 : 1); };
  return !part.sizes().empty() && part.sizes().size() == whole.sizes().size() &&
         whole.sizes().front() == part.sizes().front() * size && std::ranges::equal(rest(part), rest(whole));
}

bool same_dtype(const Op& op) { return op.tensors.input->dtype == op.tensors.output->dtype; }

}  // namespace

bool is_well_formed(const Op& op, Rank size) {
  const OpRow& row = row_of(op.kind);
  const OpTensors& tensors = op.tensors;
  const auto is_full = [size](const TensorList* list) {
    return length(list) == static_cast<std::size_t>(size);
  };
  if (row.family != Family::collective) {
    return true;  // checked elsewhere
  }
  if (row.root != Root::none && !root_exists(op, size)) {
    return false;
  }
  switch (row.sizes) {
    case Sizes::equal:
      return row.given != Tensors::several || !tensors.inputs->empty();
    case Sizes::gathered:
    case Sizes::divided:
      if (has_root(op.kind) && !takes_list(row)) {  // gather_single, which checks sizes only
        return op.rank != op.root || (same_dtype(op) && flat_sizes_fit(op, size));
      }
      if (!takes_list(row)) {
        return same_dtype(op) && flat_shapes_fit(op, size);  // which implies that the sizes fit
      }
      if (has_no_list(op)) {
        return true;
      }
      return is_full(list_of(op)) && !misshapen(*list_of(op), single_of(op).shape);
    case Sizes::exchanged:
      if (takes_list(row)) {
        return is_full(tensors.inputs) && is_full(tensors.outputs) && all_alike(*tensors.inputs) &&
               all_alike(*tensors.outputs);
      }
      return tensors.splits != nullptr
                 ? split_error(op, size) == nullptr && gloo_enforce_text(op, size).empty()
                 : tensors.input->numel == tensors.output->numel && tensors.input->numel % size == 0;
  }
  return true;
}

namespace {

std::string tuple_text(const Shape& shape) { return fmt::format("({})", fmt::join(shape.sizes(), ", ")); }

std::string list_length_text(const Op& op, Rank size) {
  const bool scatters = row_of(op.kind).sizes == Sizes::divided;
  return fmt::format(
      "Incorrect {} list size {}. {} list size should be {}, same as size of the process group.",
      scatters ? "input" : "output", length(list_of(op)), scatters ? "Input" : "Output", size);
}

std::string misshapen_text(const TensorList& list, std::size_t index, const Shape& expected) {
  return fmt::format("invalid tensor size at index {} (expected {}, got {})", index, tuple_text(expected),
                     tuple_text(list[index].shape()));
}

std::string invalid_root_text(const Op& op) { return fmt::format("invalid root rank: {}", op.root); }

// Both backends check gather and scatter in the same way. Empty if nothing is wrong.
std::string rooted_list_text(const Op& op, Rank size) {
  if (!root_exists(op, size)) {
    return invalid_root_text(op);
  }
  if (op.rank != op.root) {
    return {};
  }
  if (length(list_of(op)) != static_cast<std::size_t>(size)) {
    return list_length_text(op, size);
  }
  const Shape& expected = single_of(op).shape;
  const auto index = misshapen(*list_of(op), expected);
  return index ? misshapen_text(*list_of(op), *index, expected) : std::string();
}

// ---- Gloo ----

std::string all_gather_text(const Op& op, Rank size) {
  if (length(op.tensors.outputs) != static_cast<std::size_t>(size)) {
    return fmt::format("invalid output tensor list at index 0 (expected length {}, got {})", size,
                       length(op.tensors.outputs));
  }
  const Shape& expected = op.tensors.input->shape;
  const auto index = misshapen(*op.tensors.outputs, expected);
  return index ? misshapen_text(*op.tensors.outputs, *index, expected) : std::string();
}

// The C++ name of an element type.
std::string_view element_type(Dtype dtype) {
  constexpr std::array names = std::to_array<std::string_view>(
      {"float", "double", "c10::Half", "c10::BFloat16", "signed char", "short int", "int", "long int",
       "unsigned char", "bool", "complex64", "complex128"});
  static_assert(names.size() == dtype_count);
  return names[static_cast<std::size_t>(dtype)];
}

std::string tensor_options(const Storage& tensor) {
  return fmt::format(
      "TensorOptions(dtype={}, device=cpu, layout=Strided, requires_grad=false (default), "
      "pinned_memory=false (default), memory_format=(nullopt))",
      element_type(tensor.dtype));
}

// all_gather_into_tensor is an allgather into chunks of the output.
std::string all_gather_flat_text(const Op& op, Rank size) {
  const std::vector<Shape> chunks = chunks_of(op.tensors.output->shape, size);
  if (chunks.size() != static_cast<std::size_t>(size)) {
    return fmt::format("invalid output tensor list at index 0 (expected length {}, got {})", size,
                       chunks.size());
  }
  if (!same_dtype(op)) {
    return fmt::format("invalid tensor type at index 0 (expected {}, got {})",
                       tensor_options(*op.tensors.input), tensor_options(*op.tensors.output));
  }
  const Shape& expected = op.tensors.input->shape;
  const auto wrong = std::ranges::find_if(chunks, [&](const Shape& chunk) { return !(chunk == expected); });
  return wrong == chunks.end()
             ? std::string()
             : fmt::format("invalid tensor size at index {} (expected {}, got {})", wrong - chunks.begin(),
                           tuple_text(expected), tuple_text(*wrong));
}

std::string failed_check(std::string_view condition, std::string_view left, std::string_view right) {
  return fmt::format("Check failed: {} ({} vs. {}). ", condition, left, right);
}

// ProcessGroupGloo::reduce_scatter_tensor_coalesced and, in 2.14, reduce_scatter.
std::string reduce_scatter_text(const Op& op, Rank size) {
  const Storage& output = *op.tensors.output;
  if (op.tensors.inputs != nullptr) {
    if (op.tensors.inputs->size() != static_cast<std::size_t>(size)) {
      return "invalid input tensor list size, must be world size";
    }
    const Shape& own = (*op.tensors.inputs)[static_cast<std::size_t>(op.rank)].shape();
    return own == output.shape ? std::string()
                               : failed_check("outputs[0].sizes().vec() == inputs[0][i].sizes().vec()",
                                              fmt::format("{}", fmt::join(output.shape.sizes(), " ")),
                                              fmt::format("{}", fmt::join(own.sizes(), " ")));
  }
  const Storage& input = *op.tensors.input;
  if (!same_dtype(op)) {
    return failed_check("outputTensors[i].dtype() == inputTensors[i].dtype()", element_type(output.dtype),
                        element_type(input.dtype));
  }
  if (rows_of(output) * size != rows_of(input)) {
    return failed_check("outputShape[0] * worldSize == inputShape[0]", std::to_string(rows_of(output) * size),
                        std::to_string(rows_of(input)));
  }
  for (std::size_t i = 1; i < std::min(output.shape.sizes().size(), input.shape.sizes().size()); ++i) {
    if (output.shape.sizes()[i] != input.shape.sizes()[i]) {
      return failed_check("outputShape[i] == inputShape[i]", std::to_string(output.shape.sizes()[i]),
                          std::to_string(input.shape.sizes()[i]));
    }
  }
  return {};
}

std::string all_to_all_text(const Op& op, Rank size) {
  for (const auto& [list, name] :
       {std::pair(op.tensors.inputs, "input"), std::pair(op.tensors.outputs, "output")}) {
    if (length(list) != static_cast<std::size_t>(size)) {
      return fmt::format("{} tensor list size {} does not match world size {}", name, length(list), size);
    }
    if (const auto index = misshapen(*list, list->front().shape())) {
      return misshapen_text(*list, *index, list->front().shape());
    }
  }
  return {};
}

}  // namespace

std::optional<Error> gloo_argument_error(const Op& op, Rank size, const TorchTraits& torch) {
  const OpRow& row = row_of(op.kind);
  if (row.gloo_method.empty() || torch.release < row.gloo_since) {
    return std::nullopt;  // not checked, not supported at all, or checked elsewhere
  }
  // Most of Gloo's errors begin with the method that raises them. If nothing else is wrong, the device may be; meta
  // tensors of operations that do not come here never reach the process group: the dispatcher refuses them.
  const auto error = [&](std::string text) -> std::optional<Error> {
    if (text.empty() && op.device.type == DeviceType::meta) {
      text = "unsupported device type meta";
    }
    if (text.empty()) {
      return std::nullopt;
    }
    return RuntimeError(fmt::format("ProcessGroupGloo::{}: {}", row.gloo_method, text));
  };
  switch (row.sizes) {
    case Sizes::equal:
      if (row.given == Tensors::several) {
        return error(op.tensors.inputs->empty() ? "requires non-empty tensor list" : "");
      }
      return op.device.type == DeviceType::meta || root_exists(op, size) ? std::nullopt
                                                                         : error(invalid_root_text(op));
    case Sizes::gathered:
    case Sizes::divided:
      if (row.root != Root::none) {
        return error(rooted_list_text(op, size));
      }
      if (row.reduces) {
        const std::string text = reduce_scatter_text(op, size);
        return text.empty() ? std::nullopt : std::optional<Error>(RuntimeError(text));
      }
      return error(row.filled == Tensors::one ? all_gather_flat_text(op, size) : all_gather_text(op, size));
    case Sizes::exchanged:
      if (row.given == Tensors::per_member) {
        return error(all_to_all_text(op, size));
      }
      break;
  }
  if (op.device.type == DeviceType::meta) {
    return error({});
  }
  const char* text = op.tensors.splits != nullptr ? split_error(op, size) : nullptr;
  return text != nullptr ? std::optional<Error>(RuntimeError(text))
                         : std::nullopt;  // Gloo detects the rest later: gloo_enforce_text
}

// ---- NCCL ----

namespace {

// NCCL itself checks the root of a broadcast or reduce (src/misc/argcheck.cc).
std::optional<Error> nccl_root_error(const Op& op, Rank size) {
  if (root_exists(op, size)) {
    return std::nullopt;
  }
  return Error(
      "torch.distributed.DistBackendError",
      fmt::format("NCCL error: invalid argument. {} : invalid root {} (root should be in the 0..{} range)",
                  has_reduce_op(op.kind) ? "Reduce" : "Broadcast", op.root, size));
}

// Parts of different sizes are accepted: torch makes one broadcast or reduce for each, in one NCCL group. A list of
// another length is one tensor for torch 2 (newLikeFlat), which NCCL takes for one of all ranks.
std::optional<Error> nccl_list_error(const Op& op, Rank size, const TorchTraits& torch) {
  const TensorList& list = *list_of(op);
  if (list.empty()) {
    return ValueError("Tensor list must be nonempty");
  }
  if (list.size() != static_cast<std::size_t>(size)) {
    if (torch.nccl_checks_lists) {
      return ValueError("Tensor list input to scatter/gather must match number of collective participants");
    }
    return RuntimeError(
        fmt::format("{}: a list of {} for {} ranks; NCCL would run beyond the end of a tensor",
                    to_string(op.kind), list.size(), size));
  }
  if (list[static_cast<std::size_t>(op.rank)].numel() == single_of(op).numel) {  // the rank's own part
    return std::nullopt;
  }
  // torch 2.x does not notice equal parts of the wrong size, and reads or writes out of bounds. Earlier releases
  // raised:
  if (all_alike(list)) {
    return ValueError("All tensor operands to scatter/gather must have the same number of elements");
  }
  return ValueError(fmt::format("Tensor input and output of {} must have the same number of elements ",
                                row_of(op.kind).sizes == Sizes::gathered ? "_broadcast_oop" : "_reduce_oop"));
}

std::optional<Error> nccl_flat_error(const Op& op, Rank size) {
  const bool gathers = row_of(op.kind).sizes == Sizes::gathered;
  if (!same_dtype(op)) {
    return TypeError(gathers ? "output tensor must have the same type as input tensor"
                             : "input tensor must be the same type as the output tensor.");
  }
  if (!flat_sizes_fit(op, size)) {
    return ValueError(gathers ? "output tensor size must be equal to world_size times input tensor size"
                              : "input tensor must be the same size as output size times world size");
  }
  return std::nullopt;
}

std::optional<Error> nccl_all_to_all_error(const Op& op, Rank size) {
  if (gives_list(op.kind)) {
    const auto members = static_cast<std::size_t>(size);
    if (length(op.tensors.inputs) != members || length(op.tensors.outputs) != members) {
      return ValueError("Tensor list input to scatter/gather must match number of collective participants");
    }
    return std::nullopt;
  }
  if (op.tensors.splits != nullptr) {
    const char* error = split_error(op, size);
    return error != nullptr ? std::optional<Error>(RuntimeError(error)) : std::nullopt;
  }
  if (op.tensors.input->numel != op.tensors.output->numel) {
    // Nothing checks this: each part has the size of the input's, and the shorter tensor is overrun.
    return RuntimeError(fmt::format(
        "all_to_all_single: {} elements go in and {} come out; NCCL would run beyond the end of a tensor",
        op.tensors.input->numel, op.tensors.output->numel));
  }
  return std::nullopt;
}

// A list on the root, or one tensor: ProcessGroupNCCL.cpp, gather, scatter and gather_single.
std::optional<Error> nccl_rooted_error(const Op& op, Rank size) {
  const OpRow& row = row_of(op.kind);
  const std::string text = takes_list(row)         ? rooted_list_text(op, size)
                           : root_exists(op, size) ? std::string()
                                                   : invalid_root_text(op);
  if (!text.empty()) {
    return ValueError(fmt::format("ProcessGroupNCCL::{}: {}", row.name, text));
  }
  return takes_list(row) || op.rank != op.root ? std::nullopt : nccl_flat_error(op, size);
}

}  // namespace

std::optional<Error> nccl_argument_error(const Op& op, Rank size, const TorchTraits& torch) {
  const OpRow& row = row_of(op.kind);
  if (op.device.type != DeviceType::cuda || row.family != Family::collective) {
    return std::nullopt;  // refused for its device first, or checked elsewhere
  }
  switch (row.sizes) {
    case Sizes::equal:
      if (row.given == Tensors::several && op.tensors.inputs->empty()) {
        return ValueError("Tensor list must be nonempty");
      }
      return row.root == Root::none ? std::nullopt : nccl_root_error(op, size);
    case Sizes::gathered:
    case Sizes::divided:
      if (row.root != Root::none) {
        return nccl_rooted_error(op, size);
      }
      return takes_list(row) ? nccl_list_error(op, size, torch) : nccl_flat_error(op, size);
    case Sizes::exchanged:
      break;
  }
  return nccl_all_to_all_error(op, size);
}

std::optional<Error> argument_error(const BackendTraits& backend, const Op& op, Rank group_size,
                                    const TorchTraits& torch) {
  if (takes_list(row_of(op.kind)) && !has_root(op.kind) && has_no_list(op)) {
    return std::nullopt;
  }
  return backend.argument_error(op, group_size, torch);
}

std::optional<Error> nccl_type_error(const Op& op, const TorchTraits& torch) {
  if (!has_tensor(op.kind)) {
    return std::nullopt;
  }
  const auto refusal = [&](const char* type, const std::string& text) {
    return Error(torch.nccl_errors_have_types ? type : "RuntimeError", text);
  };
  // torch's table of NCCL types has neither.
  if (op.dtype == Dtype::int16 || is_complex(op.dtype)) {
    return refusal("TypeError",
                   fmt::format("Input tensor data type is not supported for NCCL process group: {}",
                               scalar_type_name(op.dtype)));
  }
  if (!has_reduce_op(op.kind)) {
    return std::nullopt;
  }
  switch (op.reduce) {
    case ReduceOp::band:
    case ReduceOp::bor:
    case ReduceOp::bxor:
      return refusal("ValueError", fmt::format("Cannot use ReduceOp.{} with NCCL", to_string(op.reduce)));
    case ReduceOp::avg:
      return op.dtype == Dtype::boolean
                 ? std::optional(refusal("TypeError", "Cannot use ReduceOp.AVG with boolean inputs"))
                 : std::nullopt;
    case ReduceOp::premul_sum:
      return is_floating(op.dtype)
                 ? std::nullopt
                 : std::optional(
                       refusal("TypeError", "PreMulSum Data type must be half, float, bfloat16 or double"));
    default:
      return std::nullopt;
  }
}

Dtype nccl_barrier_dtype(const TorchTraits& torch) {
  return torch.nccl_barrier_is_float ? Dtype::float32 : Dtype::uint8;
}

Error stray_device_error(const Device& device, const Device& expected) {
  return Error(
      "torch.distributed.DistBackendError",
      fmt::format("Attempt to perform collective on tensor not on device passed to init_process_group: {} "
                  "instead of {}",
                  to_string(device), to_string(expected)));
}

}  // namespace rollcall
