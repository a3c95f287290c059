// The engine's part about which rank uses which GPU, and about calls that are refused immediately.

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/c10d/arguments.h"
#include "sim/engine/engine.h"
#include "sim/engine/start_order.h"

namespace rollcall::sim {
namespace {

using check::GroupMatcher;

}  // namespace

void Engine::check_device(const Op& op) {
  const GroupMatcher& matcher = *run_.matchers[op.group];
  const Rank rank = run_.scheduler->running();
  check::DeviceIncident incident;
  incident.at = run_.now;
  incident.seq = next_number(op);
  incident.ranks = {rank};
  incident.op = op;
  if (const std::optional<Error> error =
          argument_error(run_.rules->traits(), op, matcher.size(), *run_.torch)) {
    raise(*error, op.site);
  }
  if (!admission_.admits(op)) {
    if (run_.rules->raises_late(op, matcher.size())) {
      return;
    }
    if (admission_.one_gpu_per_rank() && op.device.type != DeviceType::cuda) {
      run_.notes->incidents.device(incident);
      const TorchError& refusal = run_.torch->nccl_host_tensor;
      raise(Error(refusal.type, fmt::format(fmt::runtime(refusal.text), to_string(op.device))), op.site);
    }
    raise(run_.rules->refusal(op, matcher.size()), op.site);
  }
  if (!admission_.one_gpu_per_rank()) {
    return;
  }
  const std::optional<Device> before = matcher.device_of(op.rank);
  if (before == op.device) [[likely]] {
    return;
  }
  if (before) {
    incident.kind = FindingKind::stray_device;
    incident.expected = *before;
    run_.notes->incidents.device(incident);
    throw stray_device_error(op.device, *before);
  }
  // The default mapping gives every rank its own GPU: a rank that uses another rank's is the odd one.
  const bool is_own = run_.options.devices.empty() && op.device == device_of_rank(run_.options, rank);
  const Rank user =
      is_own ? intruder_on_gpu(op.group, op.device, rank) : user_of_gpu(op.group, op.device, rank);
  if (user != rank) {
    incident.kind = FindingKind::duplicate_gpu;
    incident.ranks = {is_own ? user : rank};
    incident.other = is_own ? rank : user;
    run_.notes->incidents.device(incident);
    throw Error(
        "torch.distributed.DistBackendError",
        fmt::format("NCCL error: invalid usage. Duplicate GPU detected : rank {} and rank {} both on {}",
                    rank, user, to_string(op.device)));
  }
}

// The rank that uses a GPU in a group: the first one, and of those that came at the same instant the lowest.
// This is known only when the instant is over, so the ranks that ask sleep until then.
Rank Engine::user_of_gpu(GroupId group, Device device, Rank rank) {
  GpuUser& user = gpu_users_[{group, {host_of_rank(run_.options, rank), device}}];
  if (!user.settled) {
    user.rank = user.rank < 0 ? rank : std::min(user.rank, rank);
    run_.events.add(run_.now, {.kind = RunEvent::Kind::wake, .rank = rank});
    run_.scheduler->park();
    if (aborting_) [[unlikely]] {
      throw RankAborted{};
    }
    user.settled = true;
    const Rank owner = owner_of_gpu(group, device, rank);
    user.rank = owner >= 0 ? owner : user.rank;
  }
  return user.rank;
}

// The rank that has used `rank`'s own GPU since an earlier instant; usually `rank` itself.
Rank Engine::intruder_on_gpu(GroupId group, Device device, Rank rank) const {
  const auto found = gpu_users_.find({group, {host_of_rank(run_.options, rank), device}});
  return found != gpu_users_.end() && found->second.settled ? found->second.rank : rank;
}

// The rank on this host that owns the GPU by the default mapping, if it uses it in the group; otherwise -1.
Rank Engine::owner_of_gpu(GroupId group, Device device, Rank rank) const {
  if (!run_.options.devices.empty()) {
    return -1;
  }
  for (Rank member = 0; member < run_.members[group].size(); ++member) {
    const Rank owner = run_.members[group].ranks[static_cast<std::size_t>(member)];
    const bool is_owner = host_of_rank(run_.options, owner) == host_of_rank(run_.options, rank) &&
                          device_of_rank(run_.options, owner) == device;
    if (is_owner && run_.matchers[group]->device_of(member) == device) {
      return owner;
    }
  }
  return -1;
}

}  // namespace rollcall::sim
