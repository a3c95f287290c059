#pragma once

// The errors that torch raises for a call's arguments. Two layers check them, one after the other:
//
//   distributed_c10d.py   before there is an operation: is it a tensor, do the dtypes agree, is a list
//                         given where one belongs. The functions below throw.
//   the process group     when it is handed the operation: roots, list lengths, sizes. By then the call has
//                         been issued and a recorder has seen it, and the errors depend on the backend.
//
// The texts are torch's: those of the run's release for the first layer, and for Gloo (ProcessGroupGloo.cpp and
// Utils.hpp of torch/csrc/distributed/c10d), those of 2.x for NCCL (ProcessGroupNCCL.cpp).

#include <optional>
#include <span>
#include <string_view>

#include "sim/base/error.h"
#include "sim/c10d/backend_traits.h"
#include "sim/c10d/op.h"
#include "sim/c10d/process_group.h"

namespace rollcall {

// Raises torch's error for a wrong use of groups, lists or dtypes. Its type changed in 2.0.
[[noreturn, gnu::cold, gnu::noinline]] void refuse_use(const std::string& text);

// Throws AttributeError if the run's release has no torch.distributed function of that name.
void require_function(std::string_view name);

// Raises the error for a missing tensor (None), with the parameter's name.
[[noreturn, gnu::cold, gnu::noinline]] void refuse_missing_tensor(const char* parameter);
inline void check_tensor(const Tensor& tensor, const char* parameter) {
  if (!tensor) [[unlikely]] {
    refuse_missing_tensor(parameter);
  }
}
void check_tensor_list(const TensorList& tensors, const char* parameter);

// Raises unless all tensors of both lists have one dtype.
void check_same_dtype(std::span<const Tensor> tensors, std::span<const Tensor> more = {});
// A tensor as a list of one.
inline std::span<const Tensor> only(const Tensor& tensor) { return {&tensor, 1}; }

// Converts a root from a global rank to a rank of a group other than the world.
Rank root_in_subgroup(const ProcessGroup& group, Rank global, OpKind kind, const Site& site);
// The same of any group. The world's roots are not looked up: the backend reports a rank that does not exist.
inline Rank root_in(const ProcessGroup& group, Rank global, OpKind kind, const Site& site) {
  return group.id() == world_group ? global : root_in_subgroup(group, global, kind, site);
}

// Warns about a call on a group that the caller does not belong to.
[[gnu::cold, gnu::noinline]] void warn_not_in_group(std::string_view function);
// True if the group exists and the caller is not a member, which it also warns about.
inline bool stands_outside(const ProcessGroup& group, const char* function) {
  if (!group || group.is_member()) [[likely]] {
    return false;
  }
  warn_not_in_group(function);
  return true;
}

// Throws ValueError when the root has no list, or another rank has one. `side`: what the root is called.
void check_root_list(bool has_list, bool is_root, const char* parameter, const char* side);

// False when any backend has an error for the operation's root, lists or sizes. Operations on one tensor without a root
// are always well formed.
bool is_well_formed(const Op& op, Rank group_size);

// The error that the process group of `backend` raises for the arguments of `op`; empty if it accepts them. Every
// backend calls this for operations that are marked as malformed.
std::optional<Error> argument_error(const BackendTraits& backend, const Op& op, Rank group_size,
                                    const TorchTraits& torch);

// The same for one backend each, for its row of BackendTraits.
std::optional<Error> gloo_argument_error(const Op& op, Rank size, const TorchTraits& torch);
std::optional<Error> nccl_argument_error(const Op& op, Rank size, const TorchTraits& torch);

// The error that NCCL's group raises for a dtype or an operator that NCCL lacks. torch's C++ raised RuntimeError for
// all of them up to 2.0, and has a type for each since 2.1 (getNcclDataType and getNcclReduceOp, in
// ProcessGroupNCCL.cpp and NCCLUtils.cpp). Empty if it accepts the call.
std::optional<Error> nccl_type_error(const Op& op, const TorchTraits& torch);

// The dtype of the one element, a zero, that NCCL's barrier all_reduces (ProcessGroupNCCL::barrier).
Dtype nccl_barrier_dtype(const TorchTraits& torch);

// The error that NCCL's group raises for a tensor on another GPU than the one its communicator was made for.
Error stray_device_error(const Device& device, const Device& expected);

}  // namespace rollcall
