#include "traces/dump_report.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/check/dump_compare.h"

namespace rollcall::traces {
namespace {

using check::DumpCall;
using check::DumpFrame;
using check::DumpGroup;
using check::DumpRecord;
using check::JobDump;
using check::RankDump;

std::string plain_name(const DumpGroup& group) {
  return group.description.empty() || group.description == "undefined" ? "group " + group.name
                                                                       : group.description;
}

// One for each group; those of equal description are told apart by their names.
std::vector<std::string> names_of(const std::vector<DumpGroup>& groups) {
  std::map<std::string, int> uses;
  for (const DumpGroup& group : groups) {
    ++uses[plain_name(group)];
  }
  std::map<std::string, int> names;
  std::vector<std::string> result;
  for (const DumpGroup& group : groups) {
    std::string name = plain_name(group);
    if (uses[name] > 1) {
      name += " " + group.name;
    }
    const int number = names[name]++;  // names repeat as well, after a group was split
    result.push_back(number == 0 ? name : fmt::format("{} ({})", name, number + 1));
  }
  return result;
}

// "scalar_type" as c10 writes it, and as torch prints it where it is one of ours.
std::optional<Dtype> dtype_of(std::string_view name) {
  for (std::size_t i = 0; i < dtype_count; ++i) {
    if (scalar_type_name(static_cast<Dtype>(i)) == name) {
      return static_cast<Dtype>(i);
    }
  }
  return std::nullopt;
}

std::int64_t elements_of(const std::vector<std::vector<std::int64_t>>& shapes) {
  std::int64_t total = 0;
  for (const std::vector<std::int64_t>& shape : shapes) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) {
      if (__builtin_mul_overflow(count, extent, &count)) {
        return -1;  // a dump may claim anything
      }
    }
    if (__builtin_add_overflow(total, count, &total)) {
      return -1;
    }
  }
  return total;
}

// The collectives of one group run one after the other, whenever they were queued.
struct Lane {
  static constexpr int most_open = 4;  // what is queued behind so many unfinished calls is not drawn

  Time free_from = 0;
  int open = 0;

  // False: not to be drawn.
  bool queue(Span& span) {
    const bool is_open = span.end == Span::open;
    open += is_open ? 1 : 0;
    span.start = std::max(span.start, free_from);
    span.end = is_open ? Span::open : std::max(span.end, span.start);
    free_from = std::max(free_from, span.end);
    return !is_open || open <= most_open;
  }
};

// What one recorded call looks like wherever it was made.
struct CallLook {
  std::uint32_t name = 0;
  std::uint32_t arguments = 0;
  std::int64_t numel = 0;
  Dtype dtype = Dtype::float32;
};

class TimelineMaker {
 public:
  TimelineMaker(const JobDump& job, Timeline& timeline) : job_(job), timeline_(timeline) {
    for (const std::string& name : names_of(job.groups)) {
      groups_.push_back(timeline.intern(name));
    }
    for (const DumpCall& call : job.calls) {
      looks_.push_back(look_of(call));
    }
    find_beginning();
  }

  bool has_times() const { return begin_ != never; }
  const std::string& group_name(std::size_t group) const { return timeline_.name(groups_[group]); }

  // The last `most` records of a rank. Returns when the last thing happened.
  Time add(const RankDump& rank, std::size_t most) {
    Time last = 0;
    const std::size_t first = rank.records.size() - std::min(most, rank.records.size());
    Time place = 0;
    std::map<std::uint32_t, Lane> lanes;  // by group
    for (std::size_t i = first; i < rank.records.size(); ++i) {
      const DumpRecord& record = rank.records[i];
      if (job_.calls[record.call].is_marker()) {
        continue;
      }
      Span span = span_of(rank.rank, record, place);
      place += microsecond;
      if (span.kind == Span::Kind::collective && !lanes[record.group].queue(span)) {
        continue;
      }
      last = std::max({last, span.start, span.end});
      timeline_.add(span);
    }
    return last;
  }

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  // Ranks of one job have nearly one time; what is a year apart is some other clock, and not to be drawn.
  void find_beginning() {
    for (const RankDump& rank : job_.ranks) {
      for (const DumpRecord& record : rank.records) {
        if (record.created_ns > 0) {
          begin_ = std::min(begin_, record.created_ns);
        }
      }
    }
  }

  CallLook look_of(const DumpCall& call) {
    CallLook look;
    look.name = timeline_.intern(call.op);
    look.numel = elements_of(call.inputs);
    const std::string dtype = call.input_dtypes.empty() ? "" : call.input_dtypes.front();
    const std::optional<Dtype> known = dtype_of(dtype);
    const auto kind = parse_op_kind(call.op);
    const bool says_all = known && kind && has_tensor(*kind);  // then writers show dtype and numel
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
    look.arguments = timeline_.intern(arguments);
    return look;
  }

  Span span_of(Rank rank, const DumpRecord& record, Time place) {
    const DumpCall& call = job_.calls[record.call];
    const CallLook& look = looks_[record.call];
    Span span;
    span.rank = rank;
    span.kind = call.is_message() ? Span::Kind::message : Span::Kind::collective;
    span.seq = call.is_message() || record.is_p2p ? record.p2p_seq : record.collective_seq;
    span.name = look.name;
    span.group = groups_[record.group];
    span.arguments = look.arguments;
    span.numel = look.numel;
    span.dtype = look.dtype;
    span.async_op = true;  // every call of these backends is queued
    if (call.is_message()) {
      span.peer = member_of(record.group, call.op == "send" ? call.destination : call.source);
    }
    if (const DumpFrame* frame = check::user_frame(job_, record)) {
      span.label = timeline_.intern(frame->function);
      span.site = timeline_.intern(fmt::format("{}:{}", frame->file, frame->line));
    }
    set_times(record, place, span);
    return span;
  }

  void set_times(const DumpRecord& record, Time place, Span& span) const {
    const bool is_over = record.state == DumpRecord::State::completed;
    span.start = has_times() && record.created_ns > 0 ? record.created_ns - begin_ : place;
    span.end = span.start + microsecond;
    if (record.completed_ns > record.created_ns && record.created_ns > 0) {
      span.end = record.completed_ns - begin_;
    } else if (record.duration_ms > 0) {
      span.end = span.start + static_cast<Time>(static_cast<double>(record.duration_ms) * 1e6);
    }
    if (!is_over) {
      span.end = Span::open;
    }
  }

  Rank member_of(std::uint32_t group, Rank inside) const {
    const std::vector<Rank>& members = job_.groups[group].members;
    const auto index = static_cast<std::size_t>(inside);
    return inside >= 0 && index < members.size() ? members[index] : -1;
  }

  const JobDump& job_;
  Timeline& timeline_;
  std::vector<std::uint32_t> groups_;  // names, as in the job
  std::vector<CallLook> looks_;        // as in the job
  std::int64_t begin_ = never;
};

// Where every rank was. Of ranks that wait for others the diagnosis knows it; of the rest, the records.
class States {
 public:
  States(const JobDump& job, const Diagnosis& diagnosis) : job_(job), diagnosis_(diagnosis) {
    for (const RankDump& rank : job.ranks) {
      if (const DumpRecord* open = first_open(rank)) {
        came_[{open->group, open->collective_seq}];
      }
    }
    for (const RankDump& rank : job.ranks) {
      for (const DumpRecord& record : rank.records) {
        const auto slot = came_.find({record.group, record.collective_seq});
        if (slot != came_.end() && !record.is_p2p && !job.calls[record.call].is_message()) {
          slot->second.insert(rank.rank);
        }
      }
    }
  }

  std::vector<RankClass> all() {
    for (const Victim& victim : diagnosis_.victims) {
      add(victim.ranks, RankClass::State::waiting);
      states_.back().call = victim.call;
      states_.back().waits_for = victim.waits_for;
    }
    if (const RankSet silent = difference(diagnosis_.without_dump, told_); !silent.empty()) {
      add(silent, RankClass::State::crashed);
      states_.back().exception = "left no dump";
    }
    for (const RankDump& rank : job_.ranks) {
      if (rank.rank < diagnosis_.world_size && !told_.contains(rank.rank)) {
        add_from_records(rank);
      }
    }
    std::ranges::stable_sort(states_, {}, [](const RankClass& each) { return each.ranks.first(); });
    return std::move(states_);
  }

 private:
  void add(const RankSet& ranks, RankClass::State state) {
    told_.insert(ranks);
    states_.push_back({});
    states_.back().ranks = ranks;
    states_.back().state = state;
  }

  // A rank is in the first call that has not finished, for those that have not come; or in none.
  void add_from_records(const RankDump& rank) {
    const DumpRecord* open = first_open(rank);
    if (open == nullptr) {
      add(RankSet{rank.rank}, RankClass::State::running);
      return;
    }
    add(RankSet{rank.rank}, RankClass::State::waiting);
    states_.back().call = call_of(*open);
    if (!job_.calls[open->call].is_message()) {
      states_.back().waits_for = difference(RankSet::of(job_.groups[open->group].members),
                                            came_.at({open->group, open->collective_seq}));
    }
  }

  const DumpRecord* first_open(const RankDump& rank) const {
    const auto open = std::ranges::find_if(rank.records, [this](const DumpRecord& record) {
      return record.state != DumpRecord::State::completed && !job_.calls[record.call].is_marker();
    });
    return open == rank.records.end() ? nullptr : &*open;
  }

  Call call_of(const DumpRecord& record) const {
    const DumpCall& recorded = job_.calls[record.call];
    Call call;
    call.op = recorded.op;
    call.group = plain_name(job_.groups[record.group]);
    call.seq = recorded.is_message() || record.is_p2p ? record.p2p_seq : record.collective_seq;
    call.numel = elements_of(recorded.inputs);
    call.dtype = recorded.input_dtypes.empty() ? "" : recorded.input_dtypes.front();
    if (const DumpFrame* frame = check::user_frame(job_, record)) {
      call.label = frame->function;
      call.site = fmt::format("{}:{}", frame->file, frame->line);
    }
    return call;
  }

  const JobDump& job_;
  const Diagnosis& diagnosis_;
  std::map<std::pair<std::uint32_t, std::int64_t>, RankSet> came_;  // by group and number, where ranks wait
  RankSet told_;
  std::vector<RankClass> states_;
};

std::size_t most_per_rank(const JobDump& job) {
  return most_dump_spans / std::max<std::size_t>(job.ranks.size(), 1);
}

}  // namespace

Report report_of(const JobDump& job, const Diagnosis& diagnosis, const std::string& source) {
  Report report;
  report.scenario = source;
  report.world_size = diagnosis.world_size;
  report.backend = job.calls.empty() ? "" : job.calls.front().backend;
  report.measured = true;
  report.ranks = States(job, diagnosis).all();
  report.ops = diagnosis.records;
  TimelineMaker maker(job, report.timeline);
  for (const RankDump& rank : job.ranks) {
    if (rank.rank < report.world_size) {
      report.simulated_time = std::max(report.simulated_time, maker.add(rank, most_per_rank(job)));
    }
  }
  Finding finding = diagnosis.finding;
  for (std::size_t i = 0; i < job.groups.size(); ++i) {
    const DumpGroup& group = job.groups[i];
    report.groups.push_back({maker.group_name(i), RankSet::of(group.members)});
    const bool is_place = finding.at && group.name == diagnosis.group_name &&
                          RankSet::of(group.members) == diagnosis.group_ranks;
    if (is_place) {
      finding.at->call.group = maker.group_name(i);
    }
  }
  if (diagnosis.verdict == "no_fault") {
    report.verdict = Completed{};
  } else {
    report.verdict = Deadlock{std::move(finding)};
  }
  return report;
}

}  // namespace rollcall::traces
