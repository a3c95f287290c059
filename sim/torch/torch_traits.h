#pragma once

// TorchTraits: one row per release of PyTorch, with what programs see change between them. Code that differs asks
// the row of the release that the run stands for; nobody compares releases.
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

// What torch raises for a mistake: Python's type, and the text, which may have places for names.
struct TorchError {
  const char* type;
  std::string_view text;
};

// How the members of a Gloo group find each other through the store.
enum class GlooRendezvous : std::uint8_t {
  // A rank leaves as many addresses as it has peers (gloo/transport/context.cc of 2022).
  address_per_pair,
  // It waits for a peer and connects with it, then the next (gloo/transport/tcp/context.cc of 2023).
  one_by_one,
  // It waits for all, then connects with each (the same of 2025).
  all_then_connect,
};

// Lines of Gloo's sources that its errors name (gloo/transport/tcp).
struct GlooLines {
  int oversized;     // pair.cc: more has come than there is room for
  int closed;        // pair.cc: the peer's process is gone
  int send_timeout;  // unbound_buffer.cc
  int recv_timeout;
};

// How the members of a group make up its name, where nobody else calls new_group.
enum class LocalGroupNames : std::uint8_t {
  unknown,           // new_group has no use_local_synchronization
  salted_by_groups,  // by the number of groups that the rank is in
  salted_by_calls,   // by the number of its calls, which also number the names of other groups
};

// What _coalescing_manager makes of the calls inside it.
enum class Coalescing : std::uint8_t {
  unknown,        // it has another signature, and is about messages
  by_first_call,  // one call of the first one's kind, whatever the others are; fails without any
  alike,          // one call, if they are of one kind
};

struct TorchTraits {
  TorchRelease release;
  std::string_view name;

  // ---- Groups (torch/distributed/distributed_c10d.py) ----
  // new_group ends with a barrier in the store that all ranks of the world have to come to, members or not
  // (_store_based_barrier; later releases have it with TORCH_DIST_INIT_BARRIER only).
  bool new_group_waits_for_all;
  LocalGroupNames local_names;         // _hash_ranks_to_str
  bool new_group_refuses_duplicates;   // else a rank that is listed twice waits for itself
  std::string_view rank_out_of_range;  // {0}: the rank, {1}: the world's last, {2}: its size
  TorchError empty_group;
  bool subgroups_need_cuda;
  std::string_view subgroups_need_size;  // where there is no CUDA to say it
  std::string_view subgroup_too_large;   // {0}: its size, {1}: the world's
  std::string_view subgroup_indivisible;

  // ---- DeviceMesh (torch/distributed/device_mesh.py; 1.13 has none, and stands for 2.6) ----
  // A dimension changes places with the last one, which orders the groups of three and more dimensions otherwise.
  bool mesh_swaps_dims;
  bool
      mesh_reuses_world;  // a dimension as large as the world has the world for its group, beside others, too
  bool mesh_unflattens;   // DeviceMesh._unflatten

  // ---- Arguments (distributed_c10d.py) ----
  const char* usage_error;  // Python's type: a rank that is not a member, an unknown group, mixed dtypes
  const char* argument_type_error;   // Python's type: an argument that is not a tensor
  std::string_view not_a_tensor;     // {0}: the parameter, {1}: what it should be, {2}: what it is
  std::string_view reduction_class;  // how Python writes a reduction
  bool all_reduce_coalesced_warns;
  // src and dst of object collectives are looked up in the group first (_canonicalize_group_rank). Before, a foreign
  // one is found later, and scatter_object_list takes its src for a rank inside the group.
  bool object_calls_look_up_roots;
  Coalescing coalescing;  // _coalescing_manager

  // ---- DDP (torch/nn/parallel/distributed.py) ----
  bool first_bucket_is_small;  // 1 MiB, also where bucket_cap_mb was given
  // bucket_cap_mb_list; skip_all_reduce_unused_params; and forward_sync_buffers, which replaces broadcast_buffers.
  bool ddp_takes_new_arguments;
  // With broadcast_buffers=False, the constructor and the end of a Join send them all the same.
  bool sends_kept_buffers;

  // ---- FullyShardedDataParallel (torch/distributed/fsdp) ----
  bool fsdp_prefetches;           // BackwardPrefetch.BACKWARD_PRE is the default
  bool fsdp_limits_all_gathers;   // limit_all_gathers is: two are in flight
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
  bool checkpoint_load_gathers_keys;        // of everybody's state, first (state_dict_loader.py)
  bool checkpoint_coordinator_is_global;    // rank 0 of the world, also for another process_group (utils.py)
  bool checkpoint_looks_for_rank_metadata;  // where there is none of the whole (state_dict_loader.py)

  // ---- ProcessGroupGloo ----
  GlooRendezvous gloo_rendezvous;
  std::string_view gloo_base_class;           // that says what it does not support
  std::string_view gloo_new_group_hang;       // what a rank sees that waits in new_group
  std::string_view gloo_group_args_mismatch;  // and where the lists of ranks differ
  bool gloo_small_types;                      // bool and bfloat16
  bool gloo_averages;                         // ReduceOp.AVG
  bool gloo_reduce_scatter_tensor_sums;       // whatever reduction it is given, and without a look at it
  bool gloo_barrier_takes_devices;
  // Of isend, irecv and recv to or from oneself; {}: the rank. Empty: torch dies of them, and a ValueError stands for
  // that.
  std::string_view gloo_self_message;
  // Of messages to ranks that do not exist: connections are made when they are needed, so that a rank that is too large
  // is waited for, and others end the process.
  bool gloo_connects_late;
  GlooLines gloo_lines;
  std::string_view gloo_oversized_hint;  // what follows the sizes in that error

  // ---- ProcessGroupNCCL ----
  TorchError nccl_host_tensor;  // for a tensor that is on no GPU; {0}: the type of its device
  bool
      nccl_errors_have_types;  // a dtype or operator that NCCL lacks: TypeError or ValueError, else RuntimeError
  bool nccl_barrier_is_float;  // the one element that it is an all_reduce of; else a byte

  // ---- Meta tensors in a collective ----
  bool ignores_meta_tensors;       // the call returns, and nothing was sent
  TorchError meta_tensor_refused;  // else; {}: the operator

  // ---- ProcessGroupWrapper (TORCH_DISTRIBUTED_DEBUG=DETAIL) ----
  bool fingerprints_have_numbers;  // and the text lists what differs
};

// All that are known, oldest first.
std::span<const TorchTraits> known_torch_releases();

// The release that a version means: "2.6", or what follows it ("2.6.0+cpu"), or the newest that it begins ("2").
// Nothing for others.
std::optional<TorchRelease> parse_torch_release(std::string_view version);
// The newest known that is not newer than a version that was seen somewhere ("2.8.1" counts as 2.6), or the oldest.
// Nothing for what is not a version.
std::optional<TorchRelease> nearest_torch_release(std::string_view version);
// "1.13, 2.6 and 2.14".
std::string names_of_torch_releases();

}  // namespace rollcall
