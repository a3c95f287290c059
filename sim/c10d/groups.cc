#include "sim/c10d/groups.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/c10d/arguments.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/rank_context.h"
#include "sim/torch/torch_traits.h"

namespace rollcall {
namespace {

Op start(OpKind kind, const ProcessGroup& group, const Site& site) {
  const RankContext& self = this_rank();
  Op op;
  op.kind = kind;
  op.group = group.id();
  op.rank = group.rank();
  op.device = self.device;
  op.scope = self.scope;
  op.shadow = self.shadowing;
  op.site = site;
  return op;
}

ProcessGroup manage(GroupCall call) {
  RankContext& self = this_rank();
  spend_step(self);
  return self.backend->manage(std::move(call));
}

std::string python_list(const RankList& ranks) { return fmt::format("[{}]", fmt::join(ranks, ", ")); }

// The ranks as a GroupCall has them.
RankList checked(RankList ranks, Rank world_size) {
  const TorchTraits& torch = *this_rank().torch;
  std::sort(ranks.begin(), ranks.end());
  const bool all_differ = std::ranges::adjacent_find(ranks) == ranks.end();
  if (!all_differ && torch.new_group_refuses_duplicates) {
    throw ValueError(
        fmt::format("ranks list must not contain duplicate entries, got {}", python_list(ranks)));
  }
  if (ranks.size() > static_cast<std::size_t>(world_size)) {
    refuse_use(
        "the new group's world size should be less or equal to the world size set by init_process_group");
  }
  const auto stranger =
      std::ranges::find_if(ranks, [&](Rank rank) { return rank < 0 || rank >= world_size; });
  if (stranger != ranks.end()) {
    refuse_use(fmt::format(fmt::runtime(torch.rank_out_of_range), *stranger, world_size - 1, world_size));
  }
  if (ranks.empty()) {  // torch takes this as the default group, in which it has no rank for the caller
    raise(Error(torch.empty_group.type, std::string(torch.empty_group.text)), {});
  }
  return all_differ && ranks.size() == static_cast<std::size_t>(world_size) ? RankList() : ranks;
}

void check_cuda() {
  if (this_rank().torch->subgroups_need_cuda && this_rank().device.type != DeviceType::cuda) {
    throw ValueError("Subgroups can only be created when CUDA is available");
  }
}

// Makes the next group of one call. They are numbered, so that reports can distinguish them.
void add_group(Subgroups& made, const RankList& ranks, GroupOptions options, Site site) {
  if (!options.name.empty()) {
    options.name += std::to_string(made.all.size());
  }
  made.all.push_back(new_group(ranks, options, site));
  if (made.all.back().is_member()) {
    made.current = made.all.back();
  }
}

}  // namespace

void ProcessGroup::refuse() {
  refuse_use("Default process group has not been initialized, please make sure to call init_process_group.");
}

const ProcessGroup& detail::default_group() {
  const ProcessGroup& world = this_rank().world;
  world.members();  // raises if there is none
  return world;
}

void detail::check_registered(const ProcessGroup& group) {
  const RankContext& self = this_rank();
  const bool destroyed = !self.world || (self.destroyed && std::ranges::find(*self.destroyed, group.id()) !=
                                                               self.destroyed->end());
  if (destroyed) {
    refuse_use(
        fmt::format("Group {} is not registered, please create group with torch.distributed.new_group API",
                    group.name()));
  }
}

ProcessGroup new_group(const std::optional<RankList>& ranks, const GroupOptions& options, Site site) {
  const ProcessGroup& world = detail::default_group();
  GroupCall call;
  call.is_local = options.use_local_synchronization;
  if (call.is_local) {
    if (this_rank().torch->local_names == LocalGroupNames::unknown) {
      throw TypeError("new_group() got an unexpected keyword argument 'use_local_synchronization'");
    }
    if (ranks && std::ranges::find(*ranks, this_rank().rank) == ranks->end()) {
      return ProcessGroup::non_member();
    }
  }
  call.op = start(OpKind::new_group, world, site);
  call.ranks.push_back(ranks ? checked(*ranks, world.size()) : RankList());
  call.timeout = options.timeout;
  call.timeout_is_default = options.timeout_is_default;
  call.name = options.name;
  call.is_on_gloo = options.is_on_gloo;
  return manage(std::move(call));
}

Subgroups new_subgroups(std::optional<Rank> group_size, const GroupOptions& options, Site site) {
  check_cuda();
  const Rank world_size = detail::default_group().size();
  const TorchTraits& torch = *this_rank().torch;
  if (!group_size && this_rank().device.type != DeviceType::cuda) {
    throw ValueError(std::string(torch.subgroups_need_size));
  }
  const Rank size = group_size.value_or(this_rank().gpus);
  if (size <= 0 && !torch.subgroups_need_cuda) {
    throw ValueError(fmt::format("The arg 'group_size' ({}) must be positive", size));
  }
  if (world_size < size) {
    throw ValueError(fmt::format(fmt::runtime(torch.subgroup_too_large), size, world_size));
  }
  if (size <= 0) {
    throw Error("ZeroDivisionError", "integer division or modulo by zero");
  }
  if (world_size % size != 0) {
    throw ValueError(fmt::format(fmt::runtime(torch.subgroup_indivisible), size, world_size));
  }
  Subgroups made;
  for (Rank first = 0; first < world_size; first += size) {
    RankList ranks(static_cast<std::size_t>(size));
    std::iota(ranks.begin(), ranks.end(), first);
    add_group(made, ranks, options, site);
  }
  return made;
}

Subgroups new_subgroups_by_enumeration(const std::vector<RankList>& lists, const GroupOptions& options,
                                       Site site) {
  check_cuda();
  if (lists.empty()) {
    throw ValueError("The arg 'ranks_per_subgroup_list' cannot be empty");
  }
  Subgroups made;
  std::map<Rank, const RankList*> list_of;
  for (const RankList& ranks : lists) {
    add_group(made, ranks, options, site);
    for (const Rank rank : ranks) {
      const auto [entry, is_new] = list_of.emplace(rank, &ranks);
      if (!is_new) {
        throw ValueError(fmt::format("Rank {} has appeared in both subgroup {} and {}", rank,
                                     python_list(*entry->second), python_list(ranks)));
      }
    }
  }
  return made;
}

ProcessGroup split_group(const std::vector<RankList>& split_ranks, const SplitOptions& options, Site site) {
  require_function("split_group");
  const ProcessGroup& parent = options.parent ? options.parent : detail::default_group();
  if (split_ranks.empty()) {
    throw ValueError("split_ranks cannot be None or empty");
  }
  const bool can_split = this_rank().backend->traits().splits_groups && this_rank().is_device_bound;
  if (!can_split) {
    throw RuntimeError("No device associated with the default pg, not safe to split any process groups");
  }
  if (!parent.is_member()) {
    warn_not_in_group("split_group");
    return ProcessGroup::non_member();
  }
  GroupCall call;
  call.op = start(OpKind::split_group, parent, site);
  call.timeout = options.timeout;
  call.name = options.name;
  for (RankList ranks : split_ranks) {
    std::sort(ranks.begin(), ranks.end());
    const bool fits = ranks.empty() || (ranks.front() >= 0 && ranks.back() < parent.size());
    if (!fits || std::ranges::adjacent_find(ranks) != ranks.end()) {
      throw RuntimeError("the split group's ranks should be different ranks of the parent group");
    }
    for (Rank& rank : ranks) {
      rank = parent.members().ranks[static_cast<std::size_t>(rank)];
    }
    if (!ranks.empty()) {
      call.ranks.push_back(std::move(ranks));
    }
  }
  return manage(std::move(call));
}

void destroy_process_group(const ProcessGroup& group, Site site) {
  RankContext& self = this_rank();
  if (group && !group.is_member()) {
    return;
  }
  if (!self.world) {
    throw AssertionError("");  // assert pg is not None
  }
  const bool everything = !group || group == self.world;
  const ProcessGroup target = everything ? self.world : group;
  if (self.destroyed && std::ranges::find(*self.destroyed, target.id()) != self.destroyed->end()) {
    refuse_use("Invalid process group specified");
  }
  GroupCall call;
  call.op = start(OpKind::destroy_process_group, target, site);
  manage(std::move(call));
  if (everything) {
    self.world = {};
    self.destroyed.reset();
    return;
  }
  if (!self.destroyed) {
    self.destroyed = std::make_unique<std::vector<GroupId>>();
  }
  self.destroyed->push_back(target.id());
}

bool is_initialized() { return static_cast<bool>(this_rank().world); }

Rank get_group_rank(const ProcessGroup& group, Rank global_rank) {
  if (group.id() == world_group) {
    return global_rank;
  }
  detail::check_registered(group);
  const Rank rank = group.members().rank_of(global_rank);
  if (rank < 0) {
    refuse_use(fmt::format("Global rank {} is not part of group {}", global_rank, group.name()));
  }
  return rank;
}

Rank get_global_rank(const ProcessGroup& group, Rank group_rank) {
  if (group.id() == world_group) {
    return group_rank;
  }
  detail::check_registered(group);
  if (group_rank < 0 || group_rank >= group.members().size()) {
    refuse_use(fmt::format("Group rank {} is not part of group {}", group_rank, group.name()));
  }
  return group.members().ranks[static_cast<std::size_t>(group_rank)];
}

const RankList& get_process_group_ranks(const ProcessGroup& group) { return group.members().ranks; }

void monitored_barrier(const MonitoredBarrierOptions& options, Site site) {
  const ProcessGroup& group = options.group ? options.group : detail::default_group();
  if (!group.is_member()) {
    warn_not_in_group("monitored_barrier");
    return;
  }
  const RankContext& self = this_rank();
  if (!self.backend->traits().has_monitored_barrier) {
    refuse_use("monitored_barrier is only implemented for GLOO backend.");
  }
  spend_step(self);
  self.backend->monitored_barrier(start(OpKind::monitored_barrier, group, site),
                                  {options.timeout, options.wait_all_ranks});
}

}  // namespace rollcall
