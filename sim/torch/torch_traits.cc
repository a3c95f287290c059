#include "sim/torch/torch_traits.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "sim/base/expects.h"

namespace rollcall {
namespace {

constexpr std::string_view type_texts[] = {
    "Invalid function argument. Expected parameter `{0}` to be of type {1}.",
    "Invalid function argument. Expected parameter `{0}` of type {1}\n             but got {2} instead."};

// Each later row is the one before, with what its release changed.
constexpr TorchTraits torch_1_13 = {
    .release = TorchRelease::v1_13,
    .name = "1.13",
    .store_timeout = {"RuntimeError", "Socket Timeout"},
    .new_group_waits_for_all = true,
    .local_names = LocalGroupNames::unknown,
    .new_group_refuses_duplicates = false,
    .rank_out_of_range = "The new group's rank should be within the the world_size set by init_process_group",
    .empty_group = {"TypeError", "__init__(): incompatible constructor arguments."},
    .subgroups_need_cuda = true,
    .subgroups_need_size = "",
    .subgroup_too_large = "The arg 'group_size' must not exceed the world size",
    .subgroup_indivisible = "The world size must be divisible by 'group_size'",
    .mesh_swaps_dims = true,
    .mesh_reuses_world = false,
    .mesh_unflattens = false,
    .usage_error = "RuntimeError",
    .argument_type_error = "RuntimeError",
    .not_a_tensor = type_texts[0],
    .reduction_class = "ReduceOp",
    .all_reduce_coalesced_warns = true,
    .object_calls_look_up_roots = false,
    .coalescing = Coalescing::unknown,
    .first_bucket_is_small = true,
    .ddp_takes_new_arguments = false,
    .sends_kept_buffers = true,
    .fsdp_prefetches = false,
    .fsdp_limits_all_gathers = false,
    .fsdp_alone_is_unsharded = false,
    .fsdp_gathers_cpu_tensors = false,
    .fsdp_has_hybrid = false,
    .has_fully_shard = false,
    .fully_shard_keeps_root = true,
    .fully_shard_skips_alone = false,
    .fully_shard_on_cpu = {"", ""},
    .has_checkpoint_save = false,
    .checkpoint_load_gathers_keys = false,
    .checkpoint_coordinator_is_global = true,
    .checkpoint_looks_for_rank_metadata = false,
    .gloo_rendezvous = GlooRendezvous::address_per_pair,
    .gloo_base_class = "ProcessGroup",
    .gloo_new_group_hang =
        "the waiting ranks poll the store until the timeout (30 min by default) and raise \"Timed out "
        "initializing process group in store based barrier\", or \"Wait timeout\" where an address never "
        "comes; the log does not say which rank is missing",
    .gloo_group_args_mismatch =
        "ranks look for each other's addresses under one name: \"Wait timeout\" where one never arrives, "
        "\"enforce fail at ./gloo/transport/tcp/address.cc\" where lists differ in length",
    .gloo_small_types = false,
    .gloo_averages = false,
    .gloo_reduce_scatter_tensor_sums = false,
    .gloo_barrier_takes_devices = false,
    .gloo_self_message = "",
    .gloo_connects_late = false,
    .gloo_lines = {.oversized = 510, .closed = 598, .send_timeout = 133, .recv_timeout = 81},
    .gloo_oversized_hint = "",
    // check_gpu_single_tensor (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp)
    .nccl_host_tensor = {"RuntimeError", "Tensors must be CUDA and dense"},
    .nccl_errors_have_types = false,
    .nccl_checks_lists = true,
    .nccl_barrier_is_float = false,
    .ignores_meta_tensors = false,
    .meta_tensor_refused = {"NotImplementedError",
                            "Could not run 'c10d::{}' with arguments from the 'AutogradMeta' backend."},
    .fingerprints_have_numbers = false,
};

constexpr TorchTraits torch_2_6 = [] {
  TorchTraits row = torch_1_13;
  row.release = TorchRelease::v2_6;
  row.name = "2.6";
  row.store_timeout = {"torch.distributed.DistStoreError", "wait timeout after {0}ms, keys: {1}"};
  row.new_group_waits_for_all = false;
  row.local_names = LocalGroupNames::salted_by_groups;
  row.rank_out_of_range = "The new group's rank should be within the world_size set by init_process_group";
  row.subgroups_need_cuda = false;
  row.subgroups_need_size =
      "Default group size only takes effect when CUDA is available.If your subgroup using a backend that "
      "does not depend on CUDA,please pass in 'group_size' correctly.";
  row.subgroup_too_large = "The arg 'group_size' ({0}) must not exceed the world size ({1})";
  row.usage_error = "ValueError";
  row.argument_type_error = "TypeError";
  row.not_a_tensor = type_texts[1];
  row.reduction_class = "RedOpType";
  row.all_reduce_coalesced_warns = false;
  row.object_calls_look_up_roots = true;
  row.coalescing = Coalescing::by_first_call;
  row.first_bucket_is_small = false;
  row.sends_kept_buffers = false;
  row.fsdp_prefetches = true;
  row.fsdp_limits_all_gathers = true;
  row.fsdp_alone_is_unsharded = true;
  row.fsdp_gathers_cpu_tensors = true;
  row.fsdp_has_hybrid = true;
  row.has_fully_shard = true;
  row.fully_shard_on_cpu = {"AttributeError", "'Stream' object has no attribute 'record_event'"};
  row.has_checkpoint_save = true;
  row.checkpoint_load_gathers_keys = true;
  row.gloo_rendezvous = GlooRendezvous::one_by_one;
  row.gloo_base_class = "Backend";
  row.gloo_new_group_hang =
      "a waiting member raises \"Wait timeout\" when the timeout (30 min by default) is over; one whose peer "
      "is there and does not connect keeps waiting without a limit; the log does not say which rank is "
      "missing";
  row.gloo_group_args_mismatch =
      "members look for each other under the number of the call: \"Wait timeout\" where one never arrives, a "
      "wait without a limit where it arrived with a different list";
  row.gloo_small_types = true;
  row.gloo_reduce_scatter_tensor_sums = true;
  row.gloo_barrier_takes_devices = true;
  row.gloo_self_message = "[./gloo/transport/tcp/pair.cc:331] writev [none]: Bad file descriptor";
  row.gloo_lines = {.oversized = 446, .closed = 534, .send_timeout = 133, .recv_timeout = 81};
  // getBackend (torch/csrc/distributed/c10d/ProcessGroup.hpp)
  row.nccl_host_tensor = {"RuntimeError", "No backend type associated with device type {0}"};
  row.nccl_errors_have_types = true;
  row.nccl_checks_lists = false;
  row.nccl_barrier_is_float = true;
  row.meta_tensor_refused = {"NotImplementedError",
                             "c10d::{}: attempted to run this operator with Meta tensors, but there was no "
                             "fake impl or Meta kernel registered."};
  row.fingerprints_have_numbers = true;
  return row;
}();

// Only what calls on Gloo and NCCL have shown (tests/data/calls/2.11.txt, nccl_2.11.txt, recorded_as_on_nccl).
constexpr TorchTraits torch_2_11 = [] {
  TorchTraits row = torch_2_6;
  row.release = TorchRelease::v2_11;
  row.name = "2.11";
  row.mesh_reuses_world = true;
  row.coalescing = Coalescing::alike;
  row.gloo_averages = true;
  return row;
}();

constexpr TorchTraits torch_2_14 = [] {
  TorchTraits row = torch_2_11;
  row.release = TorchRelease::v2_14;
  row.name = "2.14";
  row.local_names = LocalGroupNames::salted_by_calls;
  row.new_group_refuses_duplicates = true;
  row.rank_out_of_range = "Rank {0} is out of range. Valid ranks are 0 to {1} (world_size={2})";
  row.empty_group = {"AssertionError", "Group rank must be specified for group members"};
  row.subgroups_need_size =
      "Default group size only takes effect when CUDA/XPU is available.If your subgroup using a backend that "
      "does not depend on CUDA/XPU,please pass in 'group_size' correctly.";
  row.subgroup_indivisible = "The world size ({1}) must be divisible by 'group_size={0}'";
  row.mesh_swaps_dims = false;
  row.mesh_unflattens = true;
  row.ddp_takes_new_arguments = true;
  row.fully_shard_keeps_root = false;
  row.fully_shard_skips_alone = true;
  row.fully_shard_on_cpu = {"", ""};
  row.checkpoint_load_gathers_keys = false;
  row.checkpoint_coordinator_is_global = false;
  row.checkpoint_looks_for_rank_metadata = true;
  row.gloo_rendezvous = GlooRendezvous::all_then_connect;
  row.gloo_reduce_scatter_tensor_sums = false;
  row.gloo_self_message =
      "[enforce fail at ./gloo/transport/tcp/pair.cc:789] state_ >= CONNECTED. 1 vs 4. Pair is not connected "
      "(<peer>${} <--> [none])";
  row.gloo_connects_late = true;
  row.gloo_lines = {.oversized = 456, .closed = 547, .send_timeout = 129, .recv_timeout = 78};
  row.gloo_oversized_hint =
      ". Received data size doesn't match expected size. Is there a distributed collective mismatch in your "
      "code?";
  row.ignores_meta_tensors = true;
  row.meta_tensor_refused = {"", ""};
  return row;
}();

constexpr std::array table = {torch_1_13, torch_2_6, torch_2_11, torch_2_14};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (static_cast<std::size_t>(table[i].release) != i) {
      return false;
    }
  }
  return table.back().release == newest_torch;
}
static_assert(is_in_order(), "traits_of finds a row by its release's number");

using Version = std::pair<int, int>;  // major, minor; -1: not given

// Reads "2.6.0+cpu" as 2 and 6. Empty if the text does not begin with a number.
std::optional<Version> parse_version(std::string_view text) {
  Version version{-1, -1};
  const char* end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, version.first);
  if (major.ec != std::errc() || version.first < 0) {
    return std::nullopt;
  }
  if (major.ptr == end) {
    return version;
  }
  const auto minor = std::from_chars(major.ptr + 1, end, version.second);
  const bool fits = *major.ptr == '.' && minor.ec == std::errc() && version.second >= 0;
  return fits ? std::optional(version) : std::nullopt;
}

}  // namespace

std::span<const TorchTraits> known_torch_releases() { return table; }

const TorchTraits& traits_of(TorchRelease release) { return table[static_cast<std::size_t>(release)]; }

std::optional<TorchRelease> parse_torch_release(std::string_view text) {
  const std::optional<Version> version = parse_version(text);
  if (!version) {
    return std::nullopt;
  }
  for (std::size_t i = table.size(); i-- > 0;) {
    const Version known = *parse_version(table[i].name);
    if (known.first == version->first && (version->second < 0 || known.second == version->second)) {
      return table[i].release;
    }
  }
  return std::nullopt;
}

std::optional<TorchRelease> nearest_torch_release(std::string_view text) {
  if (const std::optional<TorchRelease> known = parse_torch_release(text)) {
    return known;
  }
  const std::optional<Version> version = parse_version(text);
  if (!version) {
    return std::nullopt;
  }
  TorchRelease nearest = table.front().release;
  for (const TorchTraits& row : table) {
    nearest = *parse_version(row.name) <= *version ? row.release : nearest;
  }
  return nearest;
}

std::string names_of_torch_releases() {
  std::string names;
  for (const TorchTraits& row : table) {
    const bool is_last = row.release == newest_torch;
    names += (names.empty() ? "" : is_last ? " and " : ", ") + std::string(row.name);
  }
  return names;
}

}  // namespace rollcall
