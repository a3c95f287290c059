#include "real/evidence/logged_outlook.h"

#include "sim/c10d/backend_traits.h"
#include "sim/c10d/host_calls.h"

namespace rollcall::real {
namespace {

bool is_collective(const Op& op) {
  return check::channel_of(op.kind) == check::Channel::collectives && !is_point_to_point(op.kind);
}

}  // namespace

std::vector<check::RankProgram> LoggedOutlook::programs(const std::vector<Rank>& ranks) const {
  std::vector<check::RankProgram> programs;
  const check::Evidence& evidence = run_.evidence();
  for (const Rank rank : ranks) {
    check::RankProgram program{.rank = rank, .calls = {}};
    program.is_whole =
        evidence.ranks[static_cast<std::size_t>(rank)].state == check::RankStatus::State::finished;
    for (const EvidenceBuilder::Call& call : run_.calls_of(rank)) {
      if (call.store && sets_key(*call.store)) {
        program.sets.push_back(call.store->keys.front());
      } else if (!call.store && call.seq != EvidenceBuilder::no_seq) {
        program.calls.push_back(check::program_call(call.op, run_.groups()[call.op.group], call.seq,
                                                    *evidence.scopes, traits_of(evidence.backend).has_tags));
      }
    }
    programs.push_back(std::move(program));
  }
  return programs;
}

check::StepLog LoggedOutlook::steps(const std::vector<Rank>& ranks) const {
  check::StepLog log;
  const ScopeTable& scopes = *run_.evidence().scopes;
  for (const Rank rank : ranks) {
    for (const EvidenceBuilder::Call& call : run_.calls_of(rank)) {
      if (is_collective(call.op) && call.seq != EvidenceBuilder::no_seq) {
        log.ranks[rank].push_back(check::step_of(call.op, scopes, call.seq));
      }
    }
  }
  for (const GroupMembers& group : run_.groups()) {
    log.groups[group.id] = group.name;
  }
  return log;
}

check::CallOrders LoggedOutlook::orders() const {
  check::CallOrders orders;
  for (std::size_t rank = 0; rank < run_.evidence().ranks.size(); ++rank) {
    std::vector<GroupId>& order = orders.ranks.emplace_back();
    for (const EvidenceBuilder::Call& call : run_.calls_of(static_cast<Rank>(rank))) {
      if (is_collective(call.op) && call.seq != EvidenceBuilder::no_seq) {
        order.push_back(call.op.group);
      }
    }
  }
  for (const GroupMembers& group : run_.groups()) {
    orders.names[group.id] = group.name;
  }
  return orders;
}

}  // namespace rollcall::real
