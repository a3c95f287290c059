#include "sim/engine/noting_backend.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/c10d/rank_context.h"

namespace rollcall::sim {
namespace {

constexpr std::size_t first_made_group = 1'000'000;  // far from those of the run

}  // namespace

Work NotingBackend::issue(const Op& op) {
  note(op);
  return Work(op.group, op.rank, program().calls.back().seq);
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
  program().calls.push_back(check::program_call(op, group, next_[{op.group, check::count_of(op.kind)}]++,
                                                self.scopes->path(op.scope), traits().has_tags));
}

check::RankProgram& NotingBackend::program() { return programs_[this_rank().rank]; }

}  // namespace rollcall::sim
