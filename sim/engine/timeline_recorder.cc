#include "sim/engine/timeline_recorder.h"

#include <fmt/format.h>

#include "sim/match/naming.h"

namespace rollcall::sim {

void TimelineRecorder::arrived(check::Slot& slot, Rank group_rank, Rank members, Time now) const {
  slot.arrivals.resize(static_cast<std::size_t>(members));
  slot.arrivals[static_cast<std::size_t>(group_rank)] = now;
}

void TimelineRecorder::finished(const check::GroupEvidence& group, const check::Slot& slot, Time end,
                                const std::string& remark) {
  for (Rank member = 0; member < group.members->size(); ++member) {
    if (!slot.has(member) || slot.is_through(member)) {
      continue;
    }
    const bool stays = slot.phase == check::Slot::Phase::irregular &&
                       slot.fates[static_cast<std::size_t>(member)] == check::Fate::hangs;
    const bool now_known = stays == (end == Span::open) || slot.phase != check::Slot::Phase::irregular;
    if (now_known) {
      Span span = span_of(*group.members, group.matcher->op_of(slot, member), slot.seq,
                          slot.arrivals[static_cast<std::size_t>(member)], end);
      if (!remark.empty()) {
        const std::string& said = timeline_.name(span.arguments);
        span.arguments = timeline_.intern(said + (said.empty() ? "" : ", ") + remark);
      }
      timeline_.add(span);
    }
  }
}

void TimelineRecorder::got_through(const check::GroupEvidence& group, const check::Slot& slot, Rank member,
                                   Time end) {
  timeline_.add(span_of(*group.members, group.matcher->op_of(slot, member), slot.seq,
                        slot.arrivals[static_cast<std::size_t>(member)], end));
}

void TimelineRecorder::message(const check::GroupEvidence& group, const check::Message& message, Time end) {
  Span span = span_of(*group.members, message.op, message.seq, message.posted, end);
  const Rank peer = message.source >= 0 ? message.source : message.op.root;  // receives from any: the source
  span.kind = Span::Kind::message;
  span.peer =
      peer >= 0 && peer < group.members->size() ? group.members->ranks[static_cast<std::size_t>(peer)] : -1;
  timeline_.add(span);
}

void TimelineRecorder::entered(Rank rank, const GroupMembers& group, const Op& op, std::int64_t seq,
                               Time now) {
  enter(rank, group, op, {.start = now, .seq = seq, .name = timeline_.intern(to_string(op.kind))});
}

void TimelineRecorder::entered(Rank rank, const GroupMembers& world, const StoreCall& call, Time now) {
  const char* noun = call.keys.size() > 1 ? "keys" : "key";
  Span span{.start = now, .seq = -1, .name = timeline_.intern(to_string(call.kind))};
  if (!call.keys.empty()) {
    span.arguments = timeline_.intern(fmt::format("{} {}", noun, fmt::join(call.keys, ", ")));
  }
  enter(rank, world, call.op, span);
}

// `span` has the start, and everything apart from the caller and the group.
void TimelineRecorder::enter(Rank rank, const GroupMembers& group, const Op& op, Span span) {
  span.rank = rank;
  span.kind = Span::Kind::host;
  span.group = timeline_.intern(group.name);
  span.label = timeline_.intern(scopes_.path(op.scope));
  span.site = timeline_.intern(to_string(op.site));
  host_calls_[rank] = span;
}

void TimelineRecorder::left(Rank rank, Time end) {
  if (const auto call = host_calls_.find(rank); call != host_calls_.end()) {
    call->second.end = end;
    timeline_.add(call->second);
    host_calls_.erase(call);
  }
}

void TimelineRecorder::end() {
  for (const auto& [rank, call] : host_calls_) {
    timeline_.add(call);
  }
  host_calls_.clear();
}

Span TimelineRecorder::span_of(const GroupMembers& group, const Op& op, std::int64_t seq, Time start,
                               Time end) {
  Span span;
  span.start = start;
  span.end = end;
  span.seq = seq;
  span.numel = op.numel;
  span.rank = group.ranks[static_cast<std::size_t>(op.rank)];
  span.async_op = op.async_op;
  span.shadow = op.shadow;
  span.dtype = op.dtype;
  span.name = timeline_.intern(to_string(op.kind));
  span.group = timeline_.intern(group.name);
  span.label = timeline_.intern(scopes_.path(op.scope));
  span.site = timeline_.intern(to_string(op.site));
  span.arguments = timeline_.intern(check::other_arguments(group, op));
  return span;
}

void TimelineRecorder::computed(Rank rank, Time start, Time end, const std::string& remark) {
  timeline_.add({.start = start,
                 .end = end,
                 .rank = rank,
                 .kind = Span::Kind::compute,
                 .name = timeline_.intern("compute"),
                 .arguments = timeline_.intern(remark)});
}

void TimelineRecorder::ran(Rank rank, Stream stream, const Kernel& kernel, Time start, Time end,
                           const std::string& remark) {
  timeline_.add({.start = start,
                 .end = end,
                 .rank = rank,
                 .kind = Span::Kind::compute,
                 .by_roofline = kernel.source == Kernel::Source::roofline,
                 .stream = stream.id,
                 .name = timeline_.intern(kernel.name != nullptr ? kernel.name : "compute"),
                 .arguments = timeline_.intern(remark)});
}

}  // namespace rollcall::sim
