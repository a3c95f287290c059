#pragma once

// TorchTraits: one row per release of PyTorch, with the differences that programs see. Code that depends on the release
// asks the row of the release that the run simulates; no code compares releases.
//
// Facts: the same programs on torch 1.13.0, 2.6.0 and 2.14.1 (tests/data/golden, golden_2_6, golden_2_14), and the
// sources that a field names.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sim/torch/torch_release.h"

namespace rollcall {

// The exception that torch raises for a mistake: Python's type, and the text, which may have placeholders.
struct TorchError {
  const char* type;
  std::string_view text;
};

// How the members of a Gloo group find each other through the store.
enum class GlooRendezvous : std::uint8_t {
  // A rank publishes as many addresses as it has peers (gloo/transport/context.cc of 2022).
  address_per_pair,
  // It waits for one peer and connects to it, then the next (gloo/transport/tcp/context.cc of 2023).
  one_by_one,
  // It waits for all peers, then connects to each (the same file, of 2025).
  all_then_connect,
};

// Lines of Gloo's sources that its errors name (gloo/transport/tcp).
struct GlooLines {
  int oversized;     // pair.cc: more bytes arrive than there is room for
  int closed;        // pair.cc: the peer's process is gone
  int send_timeout;  // unbound_buffer.cc
  int recv_timeout;
};

// How a group gets its name when only its members call new_group.
enum class LocalGroupNames : std::uint8_t {
  unknown,           // new_group has no use_local_synchronization
  salted_by_groups,  // by the number of groups that the rank is in
  salted_by_calls,   // by the number of its calls, which also number the names of other groups
};

// How _coalescing_manager combines the calls inside it.
enum class Coalescing : std::uint8_t {
  unknown,        // it has another signature and is for messages
  by_first_call,  // one call of the first call's kind, whatever the others are; fails if there is none
  alike,          // one call, if all are of one kind
};

struct TorchTraits {
  TorchRelease release;
  std::string_view name;

  // ---- The store (torch/csrc/distributed/c10d/TCPStore.cpp) ----
  TorchError store_timeout;  // {0}: milliseconds, {1}: the keys

  // ---- Groups (torch/distributed/distributed_c10d.py) ----
  // new_group ends with a barrier in the store that all ranks of the world have to reach, members or not
  // (_store_based_barrier; later releases have it with TORCH_DIST_INIT_BARRIER only).
  bool new_group_waits_for_all;
  LocalGroupNames local_names;         // _hash_ranks_to_str
  bool new_group_refuses_duplicates;   // else a rank that is listed twice waits for itself
  std::string_view rank_out_of_range;  // {0}: the rank, {1}: the world's last, {2}: its size
  TorchError empty_group;
  bool subgroups_need_cuda;
  std::string_view subgroups_need_size;  // raised where no CUDA gives a default size
  std::string_view subgroup_too_large;   // {0}: its size, {1}: the world's
  std::string_view subgroup_indivisible;

  // ---- DeviceMesh (torch/distributed/device_mesh.py; 1.13 has none, so its row has 2.6's values) ----
  // A dimension is swapped with the last one, which changes the order of groups in meshes of three and more dimensions.
  bool mesh_swaps_dims;
  bool
      mesh_reuses_world;  // a dimension as large as the world uses the world's group, even if there are others
  bool mesh_unflattens;   // DeviceMesh._unflatten

  // ---- Arguments (distributed_c10d.py) ----
  const char* usage_error;  // Python's type: a rank that is not a member, an unknown group, mixed dtypes
  const char* argument_type_error;   // Python's type: an argument that is not a tensor
  std::string_view not_a_tensor;     // {0}: the parameter, {1}: what it should be, {2}: what it is
  std::string_view reduction_class;  // how Python writes a reduction
  bool all_reduce_coalesced_warns;
  // src and dst of object collectives are looked up in the group first (_canonicalize_group_rank). In earlier releases,
  // a rank outside the group is detected later, and scatter_object_list takes its src as a rank inside the group.
  bool object_calls_look_up_roots;
  Coalescing coalescing;  // _coalescing_manager

  // ---- DDP (torch/nn/parallel/distributed.py) ----
  bool first_bucket_is_small;  // 1 MiB, even where bucket_cap_mb was given
  // bucket_cap_mb_list; skip_all_reduce_unused_params; and forward_sync_buffers, which replaces broadcast_buffers.
  bool ddp_takes_new_arguments;
  // The constructor and the end of a Join send the buffers even with broadcast_buffers=False.
  bool sends_kept_buffers;

  // ---- FullyShardedDataParallel (torch/distributed/fsdp) ----
  bool fsdp_prefetches;           // BackwardPrefetch.BACKWARD_PRE is the default
  bool fsdp_limits_all_gathers;   // limit_all_gathers=True is the default: two are in flight
  bool fsdp_alone_is_unsharded;   // a group of one takes NO_SHARD (_init_utils.py)
  bool fsdp_gathers_cpu_tensors;  // with all_gather (_flat_param.py)
  bool fsdp_has_hybrid;           // ShardingStrategy.HYBRID_SHARD (api.py)

  // ---- fully_shard (torch/distributed/fsdp/_fully_shard) ----
  bool has_fully_shard;          // in torch.distributed.fsdp
  bool fully_shard_keeps_root;   // gathered, whatever reshard_after_forward says (_fsdp_state.py, _lazy_init)
  bool fully_shard_skips_alone;  // a shard group of one makes no calls (_fsdp_param_group.py, unshard)
  TorchError fully_shard_on_cpu;  // raised after the first all_gather of CPU tensors; {}: nothing

  // ---- torch.distributed.checkpoint ----
  bool has_checkpoint_save;                 // save and load; before, there is save_state_dict
  bool checkpoint_load_gathers_keys;        // of all ranks' state, first (state_dict_loader.py)
  bool checkpoint_coordinator_is_global;    // rank 0 of the world, even for another process_group (utils.py)
  bool checkpoint_looks_for_rank_metadata;  // if there is no global metadata (state_dict_loader.py)

  // ---- ProcessGroupGloo ----
  GlooRendezvous gloo_rendezvous;
  std::string_view gloo_base_class;           // named in errors about unsupported operations
  std::string_view gloo_new_group_hang;       // what a rank that waits in new_group sees
  std::string_view gloo_group_args_mismatch;  // the same, where the lists of ranks differ
  bool gloo_small_types;                      // bool and bfloat16
  bool gloo_averages;                         // ReduceOp.AVG
  bool gloo_reduce_scatter_tensor_sums;       // whatever reduction it is given, without checking it
  bool gloo_barrier_takes_devices;
  // The error of isend, irecv and recv to or from the rank itself; {}: the rank. Empty: torch crashes, which a
  // ValueError represents.
  std::string_view gloo_self_message;
  // How a message to a rank that does not exist fails: connections are made when they are needed, so a send waits for a
  // rank that is too large, and all others end the process.
  bool gloo_connects_late;
  GlooLines gloo_lines;
  std::string_view gloo_oversized_hint;  // follows the sizes in the oversized error

  // ---- ProcessGroupNCCL ----
  TorchError nccl_host_tensor;  // for a tensor that is not on a GPU; {0}: the type of its device
  bool
      nccl_errors_have_types;  // a dtype or operator that NCCL lacks: TypeError or ValueError, else RuntimeError
  bool nccl_checks_lists;      // the length of lists of all_gather and reduce_scatter
  bool nccl_barrier_is_float;  // a barrier all_reduces one float; else one byte

  // ---- Meta tensors in a collective ----
  bool ignores_meta_tensors;       // the call returns without sending anything
  TorchError meta_tensor_refused;  // the error otherwise; {}: the operator

  // ---- ProcessGroupWrapper (TORCH_DISTRIBUTED_DEBUG=DETAIL) ----
  bool fingerprints_have_numbers;  // and the text lists what differs
};

// All known releases, oldest first.
std::span<const TorchTraits> known_torch_releases();

// The release that `version` names: "2.6", or a longer form ("2.6.0+cpu"), or the newest that it is a prefix of ("2").
// Empty for others.
std::optional<TorchRelease> parse_torch_release(std::string_view version);
// The newest known release that is not newer than a version found somewhere ("2.8.1" counts as 2.6), or the oldest.
// Empty if `version` is not a version.
std::optional<TorchRelease> nearest_torch_release(std::string_view version);
// "1.13, 2.6, 2.11 and 2.14".
std::string names_of_torch_releases();

}  // namespace rollcall
