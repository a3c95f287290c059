#include "traces/dumps/dump_timeline.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/diagnose/dump_case.h"
#include "sim/diagnose/dump_compare.h"

namespace rollcall::traces {
namespace {

using check::Blocker;
using check::DumpCall;
using check::DumpCase;
using check::DumpFrame;
using check::DumpGroup;
using check::DumpOp;
using check::DumpRecord;
using check::RankDump;
using check::RankOps;
using check::WaitNode;

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

// The number of spans drawn. A page has limited room, and the last spans are the ones that matter.
constexpr std::size_t spans_max = 1'000'000;

std::string plain_name(const DumpGroup& group) {
  return group.description.empty() || group.description == "undefined" ? "group " + group.name
                                                                       : group.description;
}

// The collectives of one group run one after the other, whenever they were queued.
struct Lane {
  static constexpr int most_open = 4;  // calls queued behind this many unfinished ones are not drawn

  Time free_from = 0;
  int open = 0;

  // Returns false if the span is not to be drawn.
  bool queue(Span& span) {
    const bool is_open = span.end == Span::open;
    open += is_open ? 1 : 0;
    span.start = std::max(span.start, free_from);
    span.end = is_open ? Span::open : std::max(span.end, span.start);
    free_from = std::max(free_from, span.end);
    return !is_open || open <= most_open;
  }
};

// How far a rank's clock is ahead of the first rank's: the median difference over the calls that both finished.
// A difference below one second is only the delay of noticing a completion.
std::int64_t clock_of(const DumpCase& job, const RankOps& ops) {
  constexpr std::int64_t second_ns = 1'000'000'000;
  constexpr std::size_t samples_max = 64;
  const RankOps& reference = job.view.ranks.front();
  std::vector<std::int64_t> differences;
  for (auto op = ops.ops.rbegin(); op != ops.ops.rend() && differences.size() < samples_max; ++op) {
    if (op->kind != DumpOp::Kind::collective || !op->finished) {
      continue;
    }
    const check::GroupMember* member = job.view.calls_of(op->group).member(reference.dump->rank);
    const DumpOp* other = member == nullptr ? nullptr : member->at(op->position);
    if (other != nullptr && other->finished) {
      const DumpRecord& mine = ops.record_of(*op);
      const DumpRecord& theirs = reference.record_of(*other);
      if (mine.completed_ns != 0 && theirs.completed_ns != 0) {
        differences.push_back(mine.completed_ns - theirs.completed_ns);
      }
    }
  }
  if (differences.empty()) {
    return 0;
  }
  std::sort(differences.begin(), differences.end());
  const std::int64_t middle = differences[differences.size() / 2];
  return middle > -second_ns && middle < second_ns ? 0 : middle;
}

class TimelineMaker {
 public:
  explicit TimelineMaker(const DumpCase& job) : job_(job) {
    for (const std::string& name : dump_group_names(job.view.job)) {
      groups_.push_back(result_.timeline.intern(name));
    }
    for (const DumpCall& call : job.view.job.calls) {
      looks_.push_back(look_of(call));
    }
    find_beginning();
  }

  RecordedTimeline make(Rank world_size) {
    const std::size_t ranks = job_.view.ranks.size();
    for (const RankOps& ops : job_.view.ranks) {
      if (ops.dump->rank < world_size) {
        add(*ops.dump, spans_max / ranks);
      }
    }
    for (const WaitNode& node : job_.waits.nodes) {
      add_debts(node, world_size);
    }
    return std::move(result_);
  }

 private:
  // Finds the start of the timeline, and when the last member reached each slot, on the clocks that clock_of() aligns.
  void find_beginning() {
    for (const RankOps& ops : job_.view.ranks) {
      clocks_[ops.dump->rank] = clock_of(job_, ops);
      for (const DumpRecord& record : ops.dump->records) {
        if (record.created_ns > 0) {
          const std::int64_t called = record.created_ns - clocks_[ops.dump->rank];
          begin_ = std::min(begin_, called);
          std::int64_t& last = last_came_[{record.group, record.collective_seq}];
          last = std::max(last, called);
        }
      }
    }
  }

  // Adds the last `most` records of a rank.
  void add(const RankDump& rank, std::size_t most) {
    const std::size_t first = rank.records.size() - std::min(most, rank.records.size());
    Time place = 0;
    std::map<std::uint32_t, Lane> lanes;  // by group
    const std::vector<Time> bounds = bounds_of(rank);
    for (std::size_t i = first; i < rank.records.size(); ++i) {
      const DumpRecord& record = rank.records[i];
      if (job_.view.job.calls[record.call].is_marker()) {
        continue;
      }
      Span span = span_of(rank.rank, record, place);
      if (span.end != Span::open && span.end > bounds[i] && record.duration_ms <= 0) {
        span.end = std::max(bounds[i], span.start + microsecond);
      }
      place += microsecond;
      if (span.kind == Span::Kind::collective && !lanes[record.group].queue(span)) {
        continue;
      }
      result_.end = std::max({result_.end, span.start, span.end});
      drawn_[{rank.rank, static_cast<std::uint32_t>(i)}] = next_span();
      result_.timeline.add(span);
    }
  }

  // The latest time at which each call may be drawn to end. A thread notices ends only now and then, so recorded ends
  // are not durations. The calls of a group end in order: none ended after a later one was seen to have ended.
  // Otherwise a call lasts until the rank's next call of the group, but at least until the last member reached it. For
  // calls that were queued at once, only their ends are known.
  std::vector<Time> bounds_of(const RankDump& rank) const {
    std::vector<Time> bounds(rank.records.size(), never);
    std::map<std::uint32_t, std::size_t> next;  // by group: the call after this one
    const std::int64_t begin = begin_of(rank.rank);
    std::map<std::uint32_t, Time> noticed;  // by group
    for (std::size_t i = rank.records.size(); i-- > 0 && begin_ != never;) {
      const DumpRecord& record = rank.records[i];
      const DumpCall& call = job_.view.job.calls[record.call];
      if (record.created_ns <= 0 || record.is_p2p || call.is_message() || call.is_marker()) {
        continue;
      }
      Time& end = noticed.try_emplace(record.group, never).first->second;
      end = record.completed_ns > 0 ? std::min(end, record.completed_ns - begin) : end;
      bounds[i] = end;
      const auto later = next.find(record.group);
      const auto last = last_came_.find({record.group, record.collective_seq});
      if (later != next.end() && last != last_came_.end() &&
          rank.records[later->second].created_ns > record.created_ns) {
        const Time next_call = rank.records[later->second].created_ns - begin;
        bounds[i] = std::min(end, std::max(next_call, last->second - begin_ + microsecond));
      }
      next[record.group] = i;
    }
    return bounds;
  }

  // Adds the calls that ranks owe, as open spans at the end, and the spans that wait for them.
  void add_debts(const WaitNode& node, Rank world_size) {
    std::vector<std::uint32_t> waiting;
    for (std::size_t i = 0; i < node.ops.size(); ++i) {
      const RankOps& ops = *job_.view.ops_of(node.ranks[i]);
      for (const std::uint32_t record : ops.parts_of(*node.ops[i])) {
        if (const auto drawn = drawn_.find({node.ranks[i], record}); drawn != drawn_.end()) {
          waiting.push_back(drawn->second);
          break;
        }
      }
    }
    for (const Blocker& blocker : node.blockers) {
      const bool owes = blocker.why == Blocker::Why::not_issued || blocker.why == Blocker::Why::no_group;
      if (!owes || waiting.empty() || blocker.rank >= world_size) {
        continue;
      }
      const Call owed = check::name_node(job_, node);
      Span span;
      span.rank = blocker.rank;
      span.start = result_.end;
      span.end = Span::open;
      span.name = result_.timeline.intern("not issued: " + owed.op);
      span.group = groups_[node.group];
      span.seq = owed.seq;
      result_.waits.push_back({next_span(), waiting});
      result_.timeline.add(span);
    }
  }

  std::uint32_t next_span() const { return static_cast<std::uint32_t>(result_.timeline.spans().size()); }

  // What all spans of one recorded call have in common.
  Span look_of(const DumpCall& call) {
    Span look;
    look.kind = call.is_message() ? Span::Kind::message : Span::Kind::collective;
    look.async_op = true;  // these backends queue every call
    look.name = result_.timeline.intern(call.op);
    look.numel = recorded_elements(call);
    const std::string dtype = call.dtype();
    const std::optional<Dtype> known = parse_scalar_type(dtype);
    const auto kind = parse_op_kind(call.op);
    const bool says_all = known && kind && has_tensor(*kind);  // then the writers show dtype and numel
    look.dtype = known.value_or(Dtype::float32);
    std::string arguments;
    if (!says_all && !dtype.empty()) {
      arguments = fmt::format("{} x {}", dtype, look.numel);
    }
    if (call.inputs.size() > 1 || (call.inputs.size() == 1 && call.inputs.front().size() > 1)) {
      const std::size_t shown = std::min<std::size_t>(call.inputs.size(), 3);
      for (std::size_t i = 0; i < shown; ++i) {
        arguments += fmt::format("{}[{}]", arguments.empty() ? "" : " ", fmt::join(call.inputs[i], ", "));
      }
      arguments += call.inputs.size() > shown ? " ..." : "";
    }
    look.arguments = result_.timeline.intern(arguments);
    return look;
  }

  Span span_of(Rank rank, const DumpRecord& record, Time place) {
    const DumpCall& call = job_.view.job.calls[record.call];
    Span span = looks_[record.call];
    span.rank = rank;
    span.seq = call.is_message() || record.is_p2p ? record.p2p_seq : record.collective_seq;
    span.group = groups_[record.group];
    if (call.is_message()) {
      span.peer = member_of(record.group, call.op == "send" ? call.destination : call.source);
    }
    if (const DumpFrame* frame = check::user_frame(job_.view.job, record)) {
      span.label = result_.timeline.intern(frame->function);
      span.site = result_.timeline.intern(fmt::format("{}:{}", frame->file, frame->line));
    }
    set_times(rank, record, place, span);
    return span;
  }

  // When the job began, by the rank's clock; 0 if no call says when it was made.
  std::int64_t begin_of(Rank rank) const { return begin_ == never ? 0 : begin_ + clocks_.at(rank); }

  void set_times(Rank rank, const DumpRecord& record, Time place, Span& span) const {
    const std::int64_t begin = begin_of(rank);
    span.start =
        begin_ != never && record.created_ns > 0 ? std::max<Time>(record.created_ns - begin, 0) : place;
    span.issued = span.start;
    span.end = span.start + microsecond;
    if (record.completed_ns > record.created_ns && record.created_ns > 0) {
      span.end = record.completed_ns - begin;
    } else if (record.duration_ms > 0) {
      span.end = span.start + static_cast<Time>(static_cast<double>(record.duration_ms) * 1e6);
    }
    if (!record.is_over()) {
      span.end = Span::open;
    }
  }

  Rank member_of(std::uint32_t group, Rank inside) const {
    const std::vector<Rank>& members = job_.view.job.groups[group].members;
    const auto index = static_cast<std::size_t>(inside);
    return inside >= 0 && index < members.size() ? members[index] : -1;
  }

  const DumpCase& job_;
  RecordedTimeline result_;
  std::vector<std::uint32_t> groups_;  // names, as in the job
  std::vector<Span> looks_;            // of calls, as in the job
  std::map<Rank, std::int64_t> clocks_;
  std::map<std::pair<Rank, std::uint32_t>, std::uint32_t> drawn_;             // spans, by rank and record
  std::map<std::pair<std::uint32_t, std::int64_t>, std::int64_t> last_came_;  // by group and number
  std::int64_t begin_ = never;
};

}  // namespace

std::vector<std::string> dump_group_names(const check::JobDump& job) {
  std::map<std::string, int> uses;
  for (const DumpGroup& group : job.groups) {
    ++uses[plain_name(group)];
  }
  std::map<std::string, int> names;
  std::vector<std::string> result;
  for (const DumpGroup& group : job.groups) {
    std::string name = plain_name(group);
    if (uses[name] > 1) {
      name += " " + group.name;
    }
    const int number = names[name]++;  // names repeat too, after a group was split
    result.push_back(number == 0 ? name : fmt::format("{} ({})", name, number + 1));
  }
  return result;
}

RecordedTimeline timeline_of(const DumpCase& job, Rank world_size) {
  return TimelineMaker(job).make(world_size);
}

}  // namespace rollcall::traces
