#include "sim/repair/noting_backend.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/c10d/rank_context.h"

namespace rollcall::check {
namespace {

constexpr std::size_t first_made_group = 1'000'000;  // far from those of the run

}  // namespace

Work NotingBackend::issue(const Op& op) {
  note(op);
  return Work(op.group, op.rank, program().calls.back().seq);
}

std::vector<Work> NotingBackend::issue_batch(std::span<const Op> ops) {
  const auto first = static_cast<std::int64_t>(program().calls.size());
  std::vector<Work> works = Backend::issue_batch(ops);
  for (auto i = static_cast<std::size_t>(first); i < program().calls.size(); ++i) {
    program().calls[i].batch = first;
  }
  return works;
}

ProcessGroup NotingBackend::manage(GroupCall call) {
  note(call.op);
  for (RankList& ranks : call.ranks) {
    if (ranks.empty()) {
      ranks = this_rank().world.members().ranks;
    }
    if (std::ranges::find(ranks, this_rank().rank) != ranks.end()) {
      const auto id = static_cast<GroupId>(first_made_group + made_.size());
      const std::string name = call.name.empty() ? fmt::format("g{}", made_.size() + 1) : call.name;
      made_.push_back({id, name, std::move(ranks)});
      members_[id] = &made_.back();
      made_by_[id] = static_cast<std::int64_t>(program().calls.size()) - 1;
      return {made_.back(), made_.back().rank_of(this_rank().rank)};
    }
  }
  return ProcessGroup::non_member();
}

StoreReply NotingBackend::store(const StoreCall& call) {
  if (sets_key(call)) {
    program().sets.push_back(call.keys.front());
  }
  return {call.want.value_or("0"), 0};
}

ProcessGroup NotingBackend::find_group(std::string_view name) {
  const ProcessGroup group = engine_.find_group(name);
  if (group) {
    members_[group.id()] = &group.members();
  }
  return group;
}

void NotingBackend::note(const Op& op) {
  const RankContext& self = this_rank();
  const auto found = members_.find(op.group);
  const GroupMembers& group = found == members_.end() ? self.world.members() : *found->second;
  const std::uint32_t index = index_of(group);
  program().calls.push_back(
      program_call(op, group, next_[{op.group, count_of(op.kind)}]++, *self.scopes, traits().has_tags));
  program().calls.back().group_index = index;
  program().calls.back().group_made_by = program().groups[index].made_by;
}

std::uint32_t NotingBackend::index_of(const GroupMembers& group) {
  std::vector<ProgramGroup>& groups = program().groups;
  const auto [found, is_new] =
      indexes_.try_emplace({this_rank().rank, group.id}, static_cast<std::uint32_t>(groups.size()));
  if (is_new) {
    const auto made = made_by_.find(group.id);
    groups.push_back({group.name, group.id == world_group ? std::vector<Rank>() : group.ranks,
                      made == made_by_.end() ? -1 : made->second});
  }
  return found->second;
}

RankProgram& NotingBackend::program() { return programs_[this_rank().rank]; }

}  // namespace rollcall::check
