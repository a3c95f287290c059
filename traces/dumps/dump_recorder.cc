#include "traces/dumps/dump_recorder.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "sim/base/expects.h"
#include "sim/c10d/rank_context.h"
#include "traces/dumps/recorded_call.h"

namespace rollcall::traces {

namespace {

using check::DumpCall;
using check::DumpGroup;
using check::DumpRecord;

// Simulated time begins at 0, but in a dump a time of 0 means "never".
constexpr std::int64_t epoch_ns = 1'767'225'600'000'000'000;  // 2026-01-01

std::uint32_t milliseconds(Duration duration) {
  constexpr std::int64_t longest = 0xffffffff;
  return static_cast<std::uint32_t>(std::min(duration / millisecond, longest));
}

}  // namespace

DumpRecorder::DumpRecorder(Backend& inner, Rank rank, JobRecording& job)
    : ForwardingBackend(inner), job_(job), records_messages_(inner.traits().records_messages) {
  dump_.rank = rank;
  dump_.version = "2.10";
}

Work DumpRecorder::issue(const Op& op) {
  notice();
  // A call that the rank's own backend refuses is never recorded.
  const Work work = inner().issue(op);
  if (finished_) {
    return work;
  }
  if (!records_messages_ && is_point_to_point(op.kind)) {
    pass_over(op.group, 1, 0);
    return work;
  }
  Group& group = group_of(op.group);
  for (const DumpCall& call : recorded_calls(op, traits(), group.handle.size())) {
    ++(is_point_to_point(op.kind) ? group.messages : group.collectives);
    pending_.push_back({record(op, group, call), {work}});
  }
  return work;
}

// A batch is recorded as its messages, which have no state of their own, and one marker per group, which does. All
// records of a group share one number.
std::vector<Work> DumpRecorder::issue_batch(std::span<const Op> ops) {
  notice();
  std::vector<Work> works = inner().issue_batch(ops);
  if (finished_) {
    return works;
  }
  if (!records_messages_) {
    for (const Op& op : ops) {
      pass_over(op.group, 1, 0);
    }
    return works;
  }
  std::vector<GroupId> groups;
  for (const Op& op : ops) {
    if (std::ranges::find(groups, op.group) == groups.end()) {
      groups.push_back(op.group);
    }
  }
  for (const GroupId id : groups) {
    Group& group = group_of(id);
    ++group.messages;
    std::vector<Work> batch;
    Op last;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].group == id) {
        record(ops[i], group, recorded_calls(ops[i], traits(), group.handle.size()).front());
        batch.push_back(works[i]);
        last = ops[i];
      }
    }
    pending_.push_back({record(last, group, batch_marker(name())), std::move(batch)});
  }
  return works;
}

// Gloo's monitored_barrier takes two sequence numbers and records neither.
void DumpRecorder::monitored_barrier(const Op& op, const MonitoredBarrierLimits& limits) {
  if (!finished_ && !records_messages_) {
    pass_over(op.group, 2, 2);
  }
  inner().monitored_barrier(op, limits);
}

void DumpRecorder::pass_over(GroupId group, std::uint32_t operations, std::int64_t numbers) {
  Group& used = group_of(group);
  used.unrecorded += operations;
  used.collectives += numbers;
}

ProcessGroup DumpRecorder::find_group(std::string_view group) {
  const ProcessGroup handle = inner().find_group(group);
  remember(handle, 0);
  return handle;
}

ProcessGroup DumpRecorder::manage(GroupCall call) {
  const Duration timeout = call.timeout.value_or(0);
  const ProcessGroup handle = inner().manage(std::move(call));
  remember(handle, timeout);
  return handle;
}

void DumpRecorder::remember(const ProcessGroup& handle, Duration timeout) {
  if (handle && handle.is_member()) {
    handles_.emplace(handle.id(), handle);
    if (timeout > 0) {
      group_timeouts_.emplace(handle.id(), timeout);
    }
  }
}

Duration DumpRecorder::timeout_of(const GroupMembers& members) const {
  const auto made_with = group_timeouts_.find(members.id);
  if (made_with != group_timeouts_.end()) {
    return made_with->second;
  }
  const auto named = job_.group_timeouts.find(members.name);
  if (named != job_.group_timeouts.end() && named->second > 0) {
    return named->second;
  }
  return job_.timeout > 0 ? job_.timeout : traits().timeout;
}

// The world is called "0" and "default_pg"; groups that programs make are numbered and have no description of
// their own unless they are given one (distributed_c10d.py). Here the description is the program's name for the group.
DumpRecorder::Group& DumpRecorder::group_of(GroupId id) {
  if (const auto known = groups_.find(id); known != groups_.end()) {
    return known->second;
  }
  if (id == world_group) {
    remember(inner().find_group("world"), 0);
  }
  const auto handle = handles_.find(id);
  expects(handle != handles_.end(), "a rank calls on groups that it has been given");
  const GroupMembers& members = handle->second.members();
  DumpGroup group{fmt::format("{}", id), id == world_group ? "default_pg" : members.name, members.ranks};
  std::sort(group.members.begin(), group.members.end());
  Group used;
  used.handle = handle->second;
  used.number = job_.tables.number_of(group);
  used.status.group = used.number;
  used.timeout_ms = milliseconds(timeout_of(members));
  dump_.groups.push_back(used.number);
  return groups_.emplace(id, std::move(used)).first->second;
}

std::size_t DumpRecorder::record(const Op& op, Group& group, const DumpCall& call) {
  DumpRecord record;
  record.created_ns = epoch_ns + now();
  record.collective_seq = group.collectives;
  record.p2p_seq = group.messages;
  record.call = job_.tables.number_of(call);
  record.stack = stack_of(op);
  record.group = group.number;
  record.timeout_ms = group.timeout_ms;
  record.is_p2p = is_point_to_point(op.kind);
  record.unrecorded = std::exchange(group.unrecorded, 0);
  group.status.enqueued = record.is_p2p ? group.messages : group.collectives;
  dump_.records.push_back(record);
  return dump_.records.size() - 1;
}

// The call in torch, then where the program makes it, by the scopes it is in. Shadow calls come from Join's hooks.
std::uint32_t DumpRecorder::stack_of(const Op& op) {
  const ScopeTable& scopes = *this_rank().scopes;
  const std::string label = scopes.path(op.scope);
  std::uint32_t line = op.site.line;
  if (!job_.one_program) {
    line = label.empty() ? 0 : job_.lines_of_labels.emplace(label, line).first->second;
  }
  const std::string function(to_string(op.kind));
  const std::string key = fmt::format("{} {} {} {}", function, label, line, op.shadow);
  return job_.tables.stacks.number_of(key, [&] {
    check::DumpStack stack = {{function, "torch/distributed/distributed_c10d.py", 0}};
    const std::string file = op.site ? op.site.file : "";
    for (ScopeId scope = op.scope; scope != no_scope && line > 0; scope = scopes.parent(scope)) {
      stack.push_back({std::string(scopes.name(scope)), file, line});
    }
    if (stack.size() == 1 && line > 0) {
      stack.push_back({"<module>", file, line});
    }
    if (op.shadow) {
      stack.push_back({"__exit__", "torch/distributed/algorithms/join.py", 0});
    }
    return stack;
  });
}

bool DumpRecorder::is_over(const Pending& pending) {
  return std::ranges::all_of(pending.works, [this](const Work& work) { return inner().is_completed(work); });
}

void DumpRecorder::complete(const Pending& pending) {
  DumpRecord& record = dump_.records[pending.record];
  record.retired = true;
  if (!records_messages_) {  // Gloo's recorder says no more than this
    record.state = DumpRecord::State::ended;
    return;
  }
  record.state = DumpRecord::State::completed;
  // The watchdog would have seen it before the rank made another call, and before it lost patience.
  const std::int64_t patience = record.timeout_ms * millisecond - 1;
  record.completed_ns = std::min(epoch_ns + now(), record.created_ns + std::max<std::int64_t>(patience, 0));
  for (auto& [id, group] : groups_) {
    if (group.number == record.group) {
      const std::int64_t number = record.is_p2p ? record.p2p_seq : record.collective_seq;
      group.status.completed = std::max(group.status.completed, number);
    }
  }
}

// Checks which calls have completed, as the watchdog thread does all the time; here it happens whenever the rank
// makes a call. The oldest call is usually the first to complete.
void DumpRecorder::notice() {
  while (!finished_ && first_pending_ < pending_.size() && is_over(pending_[first_pending_])) {
    complete(pending_[first_pending_++]);
  }
}

check::RankDump DumpRecorder::finish(bool standstill) {
  for (; first_pending_ < pending_.size(); ++first_pending_) {
    const Pending& pending = pending_[first_pending_];
    if (is_over(pending)) {
      complete(pending);
    } else {
      dump_.records[pending.record].retired = standstill && records_messages_;  // Gloo has no watchdog
    }
  }
  finished_ = true;
  for (const auto& [id, group] : groups_) {
    dump_.status.push_back(group.status);
  }
  std::ranges::sort(dump_.status, {}, &check::DumpStatus::group);
  std::sort(dump_.groups.begin(), dump_.groups.end());
  dump_.from_start = !dump_.records.empty();
  dump_.without_gaps = true;
  dump_.skips_messages = !records_messages_;
  return dump_;
}

}  // namespace rollcall::traces
