#include "sim/engine/cost_model.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/core.h>

#include "sim/base/expects.h"
#include "sim/c10d/backend_traits.h"
#include "sim/engine/simulate.h"

namespace rollcall::sim {

namespace {

std::int64_t bytes_of(const Op& op) {
  return has_tensor(op.kind) ? op.numel * static_cast<std::int64_t>(size_of(op.dtype)) : 0;
}

std::int64_t millionths(double share) { return static_cast<std::int64_t>(share * 1e6); }

// Keeps a program whose sizes never repeat from filling the memory.
constexpr std::size_t most_known = 4096;

std::string microseconds(double time) {
  const Duration tenths = (cost::to_duration(time) + 50) / 100;
  return fmt::format("{}.{}us", tenths / 10, tenths % 10);
}

}  // namespace

Duration UniformCost::of(OpKind kind, std::int64_t bytes, Rank members) const {
  const auto steps =
      static_cast<Duration>(std::bit_width(static_cast<std::uint32_t>(members > 1 ? members - 1 : 1)));
  // A reduction's bytes go out and come back; everything else moves once.
  const std::int64_t crossings = kind == OpKind::all_reduce ? 2 : 1;
  return steps * step_latency + bytes / bytes_per_microsecond * crossings * microsecond;
}

Duration UniformCost::of(const Op& op, const GroupMembers& group) {
  return of(op.kind, bytes_of(op), group.size());
}

Duration UniformCost::of_message(const Op& send, Rank, const GroupMembers&) {
  return of(OpKind::send, bytes_of(send), 2);
}

NcclCost::NcclCost(const cost::Cluster& cluster, Rank ranks_per_host, bool with_residuals,
                   std::vector<Rank> hosts)
    : cluster_(cluster),
      ranks_per_host_(ranks_per_host),
      // A user who measured, or said how calls are launched, wants to see the effect.
      with_residuals_(with_residuals || !cluster.corrections.empty() || cluster.launch != cost::Launch{}),
      hosts_(std::move(hosts)) {}

int NcclCost::nodes_of(const std::vector<Rank>& ranks) const {
  std::vector<Rank> nodes;
  for (const Rank rank : ranks) {
    if (nodes.empty() || nodes.back() != node_of(rank)) {
      nodes.push_back(node_of(rank));
    }
  }
  std::ranges::sort(nodes);
  return static_cast<int>(std::ranges::unique(nodes).begin() - nodes.begin());
}

NcclCost::Group& NcclCost::group_of(const GroupMembers& members) {
  if (members.id >= groups_.size()) {
    groups_.resize(members.id + 1);
  }
  Group& group = groups_[members.id];
  if (group.model == nullptr) [[unlikely]] {
    const int nodes = nodes_of(members.ranks);
    auto& model = models_[{members.size(), nodes}];
    if (model == nullptr) {
      model = std::make_unique<cost::GroupCost>(cost::communicator_of(cluster_, members.size(), nodes));
    }
    group.model = model.get();
    group.nics = nodes > 1 ? nics_of(members.ranks) : std::vector<std::int32_t>();
  }
  return group;
}

// A rank uses the NIC next to its GPU; two GPUs that share a NIC both use that one.
std::vector<std::int32_t> NcclCost::nics_of(const std::vector<Rank>& ranks) const {
  std::vector<std::int32_t> nics;
  for (const Rank rank : ranks) {
    const int built_in = std::max(1, cluster_.gpus_built_in);
    const int place = rank % ranks_per_host_ % built_in;
    nics.push_back(node_of(rank) * cluster_.links.nics + place * cluster_.links.nics / built_in);
  }
  std::ranges::sort(nics);
  const auto rest = std::ranges::unique(nics);
  nics.erase(rest.begin(), rest.end());
  return nics;
}

const NcclCost::Answer& NcclCost::ask(const Op& op, const GroupMembers& members) {
  const std::int64_t bytes = cost::bytes_of_call(op.kind, bytes_of(op), members.size());
  return ask(group_of(members), {op.kind, op.dtype, op.reduce, bytes, true});
}

Duration NcclCost::of(const Op& op, const GroupMembers& members) { return ask(op, members).time; }

cost::Demand NcclCost::demand_of(const Op& op, const GroupMembers& members) {
  const Answer& answer = ask(op, members);
  return {&members.ranks, &group_of(members).nics, answer.port_share, answer.nic_share, answer.channels};
}

std::string NcclCost::interval_of(const Op& op, const GroupMembers& members) {
  if (!with_residuals_) {
    return {};
  }
  const std::int64_t bytes = cost::bytes_of_call(op.kind, bytes_of(op), members.size());
  const auto prediction = group_of(members).model->predict(
      {.kind = op.kind, .bytes = bytes, .dtype = op.dtype, .reduce = op.reduce});
  return prediction ? fmt::format("9 of 10 from {} to {}", microseconds(prediction->low),
                                  microseconds(prediction->high))
                    : std::string();
}

Duration NcclCost::of_message(const Op& send, Rank receiver, const GroupMembers& members) {
  const auto node = [&](Rank member) { return node_of(members.ranks[static_cast<std::size_t>(member)]); };
  return ask(group_of(members),
             {OpKind::send, send.dtype, send.reduce, bytes_of(send), node(send.rank) == node(receiver)})
      .time;
}

const NcclCost::Answer& NcclCost::ask(Group& group, const Key& key) {
  if (group.last.time > 0 && group.last_key == key) [[likely]] {
    return group.last;
  }
  if (group.known.size() >= most_known) [[unlikely]] {
    group.known.clear();
  }
  const auto [entry, is_new] = group.known.try_emplace(key);
  if (is_new) {
    const auto& [kind, dtype, reduce, bytes, same_node] = key;
    const auto prediction = group.model->predict(
        {.kind = kind, .bytes = bytes, .dtype = dtype, .reduce = reduce, .same_node = same_node});
    expects(prediction.has_value(), "every cluster has a ring");
    entry->second = {.time = cost::to_duration(with_residuals_ ? prediction->fitted : prediction->time),
                     .port_share = millionths(prediction->port_share),
                     .nic_share = millionths(prediction->nic_share),
                     .channels = prediction->channels};
  }
  group.last_key = key;
  group.last = entry->second;
  return group.last;
}

std::unique_ptr<CostModel> make_cost_model(const Options& options) {
  if (options.cluster && traits_of(options.backend).has_cost_model) {
    return std::make_unique<NcclCost>(*options.cluster, options.ranks_per_host, options.residuals,
                                      options.hosts);
  }
  return std::make_unique<UniformCost>();
}

}  // namespace rollcall::sim
