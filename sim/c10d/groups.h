#pragma once

// torch.distributed's functions about groups, for the current rank (torch/distributed/distributed_c10d.py).

#include <optional>
#include <string>
#include <vector>

#include "sim/base/site.h"
#include "sim/c10d/host_calls.h"
#include "sim/c10d/process_group.h"

namespace rollcall {

struct GroupOptions {
  std::optional<Duration> timeout{};  // for making the group and for its calls
  bool timeout_is_default = false;    // `timeout` is the backend's default; the program did not ask for it
  std::string name{};  // for reports and find_group; by default g1, g2, ... in order of creation
  // Only members have to call new_group, all equally often. Throws TypeError before 2.x.
  bool use_local_synchronization = false;
  // new_group(backend="gloo") in a job on NCCL: its calls are simulated as NCCL's, and need no communicator.
  bool is_on_gloo = false;
};

// Makes a group of the given global ranks, in ascending order; of all ranks if there is no list. All ranks of the world
// have to call it, members or not, and in the same order: the group's name is the number of the call. In 1.13 no rank
// continues before all have called; later, members wait for members, and other ranks do not wait. Ranks that are not
// members get a non-member handle. Throws RuntimeError or ValueError (TorchTraits) for ranks that do not exist, and
// when other ranks do not arrive in time.
ProcessGroup new_group(const std::optional<RankList>& ranks = {}, const GroupOptions& options = {},
                       Site site = Site::here());

// The group that the rank is in (null if there is none), and all groups made.
struct Subgroups {
  ProcessGroup current;
  std::vector<ProcessGroup> all;
};

// Groups of `group_size` consecutive ranks, by default as many as a host has GPUs. Throws ValueError without GPUs, or
// when the size does not divide the world.
Subgroups new_subgroups(std::optional<Rank> group_size = {}, const GroupOptions& options = {},
                        Site site = Site::here());
// One group per list. Throws ValueError when a rank is in two.
Subgroups new_subgroups_by_enumeration(const std::vector<RankList>& lists, const GroupOptions& options = {},
                                       Site site = Site::here());

struct SplitOptions {
  ProcessGroup parent{};
  std::optional<Duration> timeout{};
  std::string name{};
};

// Splits the parent group, by default the world. The lists are ranks inside the parent. All members of the parent have
// to call it; those in no list get a non-member handle. Only NCCL can split.
ProcessGroup split_group(const std::vector<RankList>& split_ranks, const SplitOptions& options = {},
                         Site site = Site::here());

// Destroys a group; without an argument, the world and all other groups. With NCCL it waits for the other members.
void destroy_process_group(const ProcessGroup& group = {}, Site site = Site::here());
bool is_initialized();

// Both throw TorchTraits::usage_error when the rank is not in the group, or the group was destroyed.
Rank get_group_rank(const ProcessGroup& group, Rank global_rank);
Rank get_global_rank(const ProcessGroup& group, Rank group_rank);
const RankList& get_process_group_ranks(const ProcessGroup& group);

struct MonitoredBarrierOptions {
  ProcessGroup group{};
  std::optional<Duration> timeout{};
  bool wait_all_ranks = false;
};

// A barrier in which rank 0 of the group names the ranks that have not arrived in time. Only Gloo has it.
void monitored_barrier(const MonitoredBarrierOptions& options = {}, Site site = Site::here());

namespace detail {
// The world. Throws TorchTraits::usage_error once it was destroyed.
const ProcessGroup& default_group();
// Throws TorchTraits::usage_error for a group that this rank has destroyed.
void check_registered(const ProcessGroup& group);
}  // namespace detail

}  // namespace rollcall
