// Puts ranks in equal states into one class, which is one line of the report: part of the judge's interface (judge.h).

#include <map>
#include <tuple>

#include "sim/judge/judge.h"
#include "sim/match/naming.h"

namespace rollcall::check {
namespace {

std::string exception_text(const Evidence& evidence, const RankStatus& status) {
  const Exception* exception = evidence.exception_of(status);
  if (exception == nullptr) {
    return {};
  }
  return exception->message.empty() ? exception->type : exception->type + ": " + exception->message;
}

// The exception that the rank ended with, or the keys it waits for.
std::string detail_of(const Evidence& evidence, const RankStatus& status) {
  const bool in_store = status.waits() && status.channel == Channel::store;
  return in_store ? name_call(evidence, waiting_op(evidence, status), status.seq).key
                  : exception_text(evidence, status);
}

// Ranks with equal keys are in one class. Scope and call represent the site: both are stable numbers.
using Key = std::tuple<RankStatus::State, GroupId, std::int64_t, std::int64_t, ScopeId, OpKind, Rank,
                       std::uint32_t, std::uint32_t, std::int64_t, Dtype, std::string>;

Key key_of(const Evidence& evidence, const RankStatus& status) {
  Op op;
  if (status.waits()) {
    op = waiting_op(evidence, status);
  }
  const Rank peer = is_point_to_point(op.kind) ? op.root : -1;
  const bool in_slot = status.waits() && status.channel != Channel::store;
  return {status.state,  op.group,     in_slot ? status.seq : -1,
          status.inputs, op.scope,     op.kind,
          peer,          op.site.line, op.site.column,
          op.numel,      op.dtype,     detail_of(evidence, status)};
}

RankClass open_class(const Evidence& evidence, const RankStatus& status) {
  RankClass result;
  result.state = status.state;
  result.inputs = status.inputs;
  result.exception = exception_text(evidence, status);
  if (status.waits()) {
    result.call = name_call(evidence, waiting_op(evidence, status), status.seq);
    result.waits_for = RankSet::of(awaited(evidence, status));
    const GroupMatcher* matcher = matcher_of(evidence, status);
    if (matcher != nullptr && matcher->last_done()) {
      const auto& last = matcher->last_done();
      result.last_completed = name_call(evidence, last->op, last->seq);
      result.last_completed->device.clear();  // of one member, which may not be in this class
    }
  }
  return result;
}

}  // namespace

std::vector<RankClass> classify(const Evidence& evidence) {
  std::map<Key, std::size_t> index;
  std::vector<RankClass> classes;
  for (std::size_t rank = 0; rank < evidence.ranks.size(); ++rank) {
    const RankStatus& status = evidence.ranks[rank];
    const auto [entry, is_new] = index.try_emplace(key_of(evidence, status), classes.size());
    if (is_new) {
      classes.push_back(open_class(evidence, status));
    }
    classes[entry->second].ranks.insert(static_cast<Rank>(rank));
  }
  return classes;
}

}  // namespace rollcall::check
