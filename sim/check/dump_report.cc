#include "sim/check/dump_report.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "sim/check/dump_case.h"

namespace rollcall::check {

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::size_t clock_samples = 64;  // calls that clocks are compared by

class TimelineWriter {
 public:
  explicit TimelineWriter(const DumpCase& job) : job_(job) {
    for (const RankOps& ops : job.view.ranks) {
      clocks_[ops.dump->rank] = clock_of(ops);
    }
    first_ = earliest();
  }

  Timeline write() {
    for (const RankOps& ops : job_.view.ranks) {
      for (std::size_t i = 0; i < ops.ops.size(); ++i) {
        add(ops, i);
      }
    }
    add_debts();
    return std::move(timeline_);
  }

  Time end() const { return end_; }
  std::vector<RecordedWait> waits() const { return waits_; }

 private:
  // How far a rank's clock is ahead of the first rank's: by the middle one of the differences between calls that
  // both finished. Less than a second is what noticing takes.
  std::int64_t clock_of(const RankOps& ops) const {
    const RankOps& reference = job_.view.ranks.front();
    std::vector<std::int64_t> differences;
    for (auto op = ops.ops.rbegin(); op != ops.ops.rend() && differences.size() < clock_samples; ++op) {
      if (op->kind != DumpOp::Kind::collective || !op->finished) {
        continue;
      }
      const GroupMember* member = job_.view.calls_of(op->group).member(reference.dump->rank);
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

  std::int64_t earliest() const {
    std::int64_t first = INT64_MAX;
    for (const RankOps& ops : job_.view.ranks) {
      for (const DumpRecord& record : ops.dump->records) {
        if (record.created_ns != 0) {
          first = std::min(first, record.created_ns - clocks_.at(ops.dump->rank));
        }
      }
    }
    return first;
  }

  Time time_of(const RankOps& ops, std::int64_t clock_ns) const {
    return std::max<Time>(clock_ns - clocks_.at(ops.dump->rank) - first_, 0);
  }

  void add(const RankOps& ops, std::size_t index) {
    const DumpOp& op = ops.ops[index];
    const DumpRecord& record = ops.record_of(op);
    Span span;
    span.rank = ops.dump->rank;
    span.start = record.created_ns != 0 ? time_of(ops, record.created_ns) : static_cast<Time>(index) * 1000;
    if (op.finished) {
      const auto took = static_cast<Time>(record.duration_ms > 0 ? record.duration_ms * 1e6F : 900.0F);
      span.end = record.completed_ns != 0 ? std::max(time_of(ops, record.completed_ns), span.start + 1)
                                          : span.start + took;
    }
    end_ = std::max({end_, span.start, span.end});
    name(name_call(job_, ops, op), op, span);
    open_.insert_or_assign(&op, static_cast<std::uint32_t>(timeline_.spans().size()));
    timeline_.add(span);
  }

  void name(const Call& call, const DumpOp& op, Span& span) {
    span.kind = op.kind == DumpOp::Kind::collective ? Span::Kind::collective : Span::Kind::message;
    span.seq = call.seq;
    span.numel = call.numel;
    span.peer = call.peer;
    span.async_op = true;
    span.name = timeline_.intern(call.op);
    span.group = timeline_.intern(call.group);
    span.label = timeline_.intern(call.label);
    span.site = timeline_.intern(call.site);
  }

  // What each rank owes, and to whom.
  void add_debts() {
    for (const WaitNode& node : job_.waits.nodes) {
      for (const Blocker& blocker : node.blockers) {
        if (blocker.why != Blocker::Why::not_issued && blocker.why != Blocker::Why::no_group) {
          continue;
        }
        const Call owed = name_node(job_, node);
        Span span;
        span.rank = blocker.rank;
        span.start = end_;
        span.name = timeline_.intern("not issued: " + owed.op);
        span.group = timeline_.intern(owed.group);
        span.seq = owed.seq;
        RecordedWait wait{static_cast<std::uint32_t>(timeline_.spans().size()), {}};
        timeline_.add(span);
        for (const DumpOp* op : node.ops) {
          wait.waiting.push_back(open_.at(op));
        }
        waits_.push_back(std::move(wait));
      }
    }
  }

  const DumpCase& job_;
  std::map<Rank, std::int64_t> clocks_;
  std::int64_t first_ = 0;
  Time end_ = 0;
  std::map<const DumpOp*, std::uint32_t> open_;  // spans by operation; looked up, never iterated
  Timeline timeline_;
  std::vector<RecordedWait> waits_;
};

Verdict verdict_of(const Diagnosis& diagnosis) {
  Finding finding = diagnosis.finding;
  finding.kind = diagnosis.verdict;
  finding.cause +=
      fmt::format("{}confidence: {}", finding.cause.empty() ? "" : "; ", to_string(diagnosis.confidence));
  for (const std::string& step : diagnosis.would_settle) {
    finding.advice += fmt::format("{}would settle it: {}", finding.advice.empty() ? "" : "; ", step);
  }
  if (diagnosis.verdict == "no_fault" || diagnosis.verdict == "straggler") {
    return Completed{};
  }
  if (diagnosis.verdict == "crashed_rank") {
    return RankFailed{std::move(finding), "left no dump"};
  }
  if (!diagnosis.variants.empty()) {
    return Mismatch{std::move(finding), diagnosis.variants};
  }
  return Deadlock{std::move(finding)};
}

// What a page says of ranks: those that wait, and all others.
std::vector<RankClass> classes_of(const DumpCase& job, const Diagnosis& diagnosis) {
  std::vector<RankClass> classes;
  RankSet others;
  for (const RankOps& ops : job.view.ranks) {
    if (!job.waits.node_of.contains(ops.dump->rank)) {
      others.insert(ops.dump->rank);
    }
  }
  for (const WaitNode& node : job.waits.nodes) {
    RankClass waiting;
    waiting.ranks = ranks_of(node);
    waiting.state = RankClass::State::waiting;
    waiting.call = name_node(job, node);
    waiting.waits_for = blockers_of(node);
    classes.push_back(std::move(waiting));
  }
  if (!others.empty()) {
    RankClass rest;
    rest.ranks = others;
    rest.state = diagnosis.verdict == "no_fault" ? RankClass::State::finished : RankClass::State::running;
    classes.push_back(std::move(rest));
  }
  if (!diagnosis.without_dump.empty()) {
    RankClass lost;
    lost.ranks = diagnosis.without_dump;
    lost.state = RankClass::State::crashed;
    lost.exception = "left no dump";
    classes.push_back(std::move(lost));
  }
  std::sort(classes.begin(), classes.end(),
            [](const RankClass& a, const RankClass& b) { return a.ranks.first() < b.ranks.first(); });
  return classes;
}

// The diagnosis in full, as what the first culprit would print.
void add_sentences(const Diagnosis& diagnosis, Report& report) {
  const Rank rank = diagnosis.finding.culprits.empty() ? 0 : diagnosis.finding.culprits.first();
  const bool is_slow = diagnosis.verdict == "straggler";
  if (is_slow) {
    report.output.push_back({rank, report.simulated_time, true, diagnosis.finding.headline});
  }
  for (const std::string& sentence : diagnosis.evidence) {
    report.output.push_back({rank, report.simulated_time, is_slow, "evidence: " + sentence});
  }
}

}  // namespace

RecordedReport recorded_report(const JobDump& job, const Diagnosis& diagnosis) {
  const DumpCase investigation(job);
  RecordedReport result;
  Report& report = result.report;
  report.world_size = diagnosis.world_size;
  report.backend = job.calls.empty() ? "" : job.calls.front().backend;
  report.verdict = verdict_of(diagnosis);
  report.ranks = classes_of(investigation, diagnosis);
  report.measured = true;
  report.ops = diagnosis.records;
  if (!job.ranks.empty()) {
    TimelineWriter writer(investigation);
    report.timeline = writer.write();
    report.simulated_time = writer.end();
    result.waits = writer.waits();
  }
  std::set<std::string> names;
  for (const DumpGroup& group : job.groups) {
    if (names.insert(group_phrase(group)).second) {
      report.groups.push_back({group_phrase(group), RankSet::of(group.members)});
    }
  }
  add_sentences(diagnosis, report);
  return result;
}

}  // namespace rollcall::check
