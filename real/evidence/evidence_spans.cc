// EvidenceBuilder's part about the timeline: when calls began and ended.

#include <algorithm>

#include "real/evidence/evidence_builder.h"
#include "sim/match/naming.h"

namespace rollcall::real {

using check::Channel;
using check::RankStatus;

void EvidenceBuilder::open_span(Rank rank, Call& call, Time at) {
  const Op& op = call.op;
  if (!options_.timeline || check::channel_of(op.kind) != Channel::collectives) {
    return;
  }
  Span span;
  span.start = at;
  span.seq = call.seq;
  span.numel = op.numel;
  span.rank = rank;
  span.async_op = op.async_op;
  span.dtype = op.dtype;
  span.kind = is_point_to_point(op.kind) ? Span::Kind::message : Span::Kind::collective;
  const GroupMembers& group = groups_[op.group];
  const bool has_peer = is_point_to_point(op.kind) && op.root >= 0 && op.root < group.size();
  span.peer = has_peer ? group.ranks[static_cast<std::size_t>(op.root)] : -1;
  span.name = timeline_.intern(to_string(op.kind));
  span.group = timeline_.intern(group.name);
  span.label = timeline_.intern(scopes_.path(op.scope));
  span.site = timeline_.intern(to_string(op.site));
  span.arguments = timeline_.intern(check::other_arguments(group, op));
  span.shadow = op.shadow;
  call.span = spans_.size();
  spans_.push_back(span);
}

// The end of a call that its rank never waited for is not logged. If all members made the call and the rank
// finished, the call ended when the last of them arrived, or later.
void EvidenceBuilder::end_unwatched_spans() {
  struct Arrivals {
    Rank members = 0;
    Time last = 0;
  };
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>, Arrivals>
      arrivals;  // by group, call, number
  for (const Span& span : spans_) {
    if (span.kind == Span::Kind::collective) {
      Arrivals& slot = arrivals[{span.group, span.name, span.seq}];
      ++slot.members;
      slot.last = std::max(slot.last, span.start);
    }
  }
  for (Span& span : spans_) {
    const bool went_on = status_[static_cast<std::size_t>(span.rank)].state == RankStatus::State::finished;
    if (span.end != Span::open || !span.async_op || span.kind != Span::Kind::collective || !went_on) {
      continue;
    }
    const auto group = std::ranges::find(groups_, timeline_.name(span.group), &GroupMembers::name);
    const Arrivals& slot = arrivals.at({span.group, span.name, span.seq});
    if (group != groups_.end() && slot.members == group->size()) {
      span.end = slot.last;
    }
  }
}

}  // namespace rollcall::real
