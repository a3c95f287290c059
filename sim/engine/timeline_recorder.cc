#include "sim/engine/timeline_recorder.h"

#include <fmt/format.h>

#include "sim/check/naming.h"

namespace rollcall::sim {

void TimelineRecorder::arrived(check::Slot& slot, Rank group_rank, Rank members, Time now) const {
  slot.arrivals.resize(static_cast<std::size_t>(members));
  slot.arrivals[static_cast<std::size_t>(group_rank)] = now;
}

void TimelineRecorder::finished(const check::GroupEvidence& group, const check::Slot& slot, Time end) {
  for (Rank member = 0; member < group.members->size(); ++member) {
    if (!slot.has(member) || slot.is_through(member)) {
      continue;
    }
    const bool stays = slot.phase == check::Slot::Phase::irregular &&
                       slot.fates[static_cast<std::size_t>(member)] == check::Fate::hangs;
    const bool now_known = stays == (end == Span::open) || slot.phase != check::Slot::Phase::irregular;
    if (now_known) {
      timeline_.add(span_of(*group.members, group.matcher->op_of(slot, member), slot.seq,
                            slot.arrivals[static_cast<std::size_t>(member)], end));
    }
  }
}

void TimelineRecorder::got_through(const check::GroupEvidence& group, const check::Slot& slot, Rank member,
                                   Time end) {
  timeline_.add(span_of(*group.members, group.matcher->op_of(slot, member), slot.seq,
                        slot.arrivals[static_cast<std::size_t>(member)], end));
}

void TimelineRecorder::abandoned(const check::GroupEvidence& group, const check::Slot& slot,
                                 Rank group_rank) {
  got_through(group, slot, group_rank, Span::open);
}

void TimelineRecorder::message(const check::GroupEvidence& group, const check::Message& message, Time end) {
  Span span = span_of(*group.members, message.op, message.seq, message.posted, end);
  const Rank peer = message.source >= 0 ? message.source : message.op.root;  // of a receive from anyone
  span.kind = Span::Kind::message;
  span.peer =
      peer >= 0 && peer < group.members->size() ? group.members->ranks[static_cast<std::size_t>(peer)] : -1;
  timeline_.add(span);
}

namespace {

std::string_view name_of(StoreCall::Kind kind) {
  using Kind = StoreCall::Kind;
  switch (kind) {
    case Kind::set:
      return "store_set";
    case Kind::get:
      return "store_get";
    case Kind::add:
      return "store_add";
    case Kind::wait:
      return "store_wait";
    case Kind::check:
      return "store_check";
    case Kind::compare_set:
      return "store_compare_set";
    case Kind::delete_key:
      return "store_delete";
    case Kind::num_keys:
      return "store_num_keys";
  }
  return {};
}

}  // namespace

void TimelineRecorder::entered(Rank rank, const GroupMembers& group, const Op& op, std::int64_t seq,
                               Time now) {
  host_calls_[rank] = {&group, op, seq, now, std::string(to_string(op.kind)), {}};
}

void TimelineRecorder::entered(Rank rank, const GroupMembers& world, const StoreCall& call, Time now) {
  const char* noun = call.keys.size() > 1 ? "keys" : "key";
  host_calls_[rank] = {
      &world,
      call.op,
      -1,
      now,
      std::string(name_of(call.kind)),
      call.keys.empty() ? std::string() : fmt::format("{} {}", noun, fmt::join(call.keys, ", "))};
}

void TimelineRecorder::left(Rank rank, Time end) {
  if (const auto call = host_calls_.find(rank); call != host_calls_.end()) {
    add(rank, call->second, end);
    host_calls_.erase(call);
  }
}

void TimelineRecorder::end() {
  for (const auto& [rank, call] : host_calls_) {
    add(rank, call, Span::open);
  }
  host_calls_.clear();
}

void TimelineRecorder::add(Rank rank, const HostCall& call, Time end) {
  Span span;
  span.start = call.start;
  span.end = end;
  span.seq = call.seq;
  span.rank = rank;
  span.kind = Span::Kind::host;
  span.name = timeline_.intern(call.name);
  span.group = timeline_.intern(call.group->name);
  span.label = timeline_.intern(scopes_.path(call.op.scope));
  span.site = timeline_.intern(to_string(call.op.site));
  span.arguments = timeline_.intern(call.arguments);
  timeline_.add(span);
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

void TimelineRecorder::computed(Rank rank, Time start, Time end) {
  Span span;
  span.start = start;
  span.end = end;
  span.rank = rank;
  span.kind = Span::Kind::compute;
  span.name = timeline_.intern("compute");
  timeline_.add(span);
}

}  // namespace rollcall::sim
