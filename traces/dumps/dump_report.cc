#include "traces/dumps/dump_report.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "sim/diagnose/dump_case.h"
#include "sim/diagnose/dump_compare.h"

namespace rollcall::traces {
namespace {

using check::DumpCall;
using check::DumpFrame;
using check::DumpGroup;
using check::DumpRecord;
using check::JobDump;
using check::RankDump;

// Where every rank was: from the diagnosis for ranks that wait for others, from the records for all others.
class States {
 public:
  States(const JobDump& job, const Diagnosis& diagnosis, const std::vector<std::string>& names)
      : job_(job), diagnosis_(diagnosis), names_(names) {
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
    for (const std::vector<Victim>* waiting : {&diagnosis_.victims, &diagnosis_.held}) {
      for (const Victim& each : *waiting) {
        add_victims(each);
      }
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

  // Where calls disagree, every rank gets its own call.
  void add_victims(const Victim& victims) {
    RankSet others = victims.ranks;
    for (const Variant& variant : diagnosis_.variants) {
      const RankSet own = intersection(others, variant.ranks);
      if (!own.empty() && variant.call.group == victims.call.group && variant.call.seq == victims.call.seq) {
        add_waiting(own, variant.call, victims.waits_for);
        others = difference(others, own);
      }
    }
    if (!others.empty()) {
      add_waiting(others, victims.call, victims.waits_for);
    }
  }

  void add_waiting(const RankSet& ranks, const Call& call, const RankSet& waits_for) {
    add(ranks, RankClass::State::waiting);
    states_.back().call = call;
    states_.back().waits_for = waits_for;
  }

  // A rank is in its first unfinished call and waits for the members that have not reached it, or it is in no
  // call.
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
      return !record.is_over() && !job_.calls[record.call].is_marker();
    });
    return open == rank.records.end() ? nullptr : &*open;
  }

  Call call_of(const DumpRecord& record) const {
    const DumpCall& recorded = job_.calls[record.call];
    Call call;
    call.op = recorded.op;
    call.group = names_[record.group];
    call.seq = recorded.is_message() || record.is_p2p ? record.p2p_seq : record.collective_seq;
    call.numel = recorded_elements(recorded);
    call.dtype = recorded.dtype();
    if (const DumpFrame* frame = check::user_frame(job_, record)) {
      call.label = frame->function;
      call.site = fmt::format("{}:{}", frame->file, frame->line);
    }
    return call;
  }

  const JobDump& job_;
  const Diagnosis& diagnosis_;
  const std::vector<std::string>& names_;                           // of groups
  std::map<std::pair<std::uint32_t, std::int64_t>, RankSet> came_;  // by group and number, where ranks wait
  RankSet told_;
  std::vector<RankClass> states_;
};

Verdict verdict_of(const Diagnosis& diagnosis, Finding finding) {
  if (diagnosis.finding.kind == FindingKind::no_fault || diagnosis.finding.kind == FindingKind::straggler) {
    return Completed{};
  }
  if (diagnosis.finding.kind == FindingKind::crashed_rank) {
    return RankFailed{std::move(finding), "left no dump"};
  }
  if (!diagnosis.variants.empty()) {
    return Mismatch{std::move(finding), diagnosis.variants};
  }
  return Deadlock{std::move(finding)};
}

}  // namespace

RecordedReport report_of(const JobDump& job, const Diagnosis& diagnosis, const std::string& source) {
  RecordedReport result;
  Report& report = result.report;
  const std::vector<std::string> names = dump_group_names(job);
  report.scenario = source;
  report.world_size = diagnosis.world_size;
  report.backend = job.calls.empty() ? "" : job.calls.front().backend;
  report.measured = true;
  report.ranks = States(job, diagnosis, names).all();
  report.ops = diagnosis.records;
  if (!job.ranks.empty()) {
    RecordedTimeline recorded = timeline_of(check::DumpCase(job), report.world_size);
    report.timeline = std::move(recorded.timeline);
    report.simulated_time = recorded.end;
    result.waits = std::move(recorded.waits);
  }
  Finding finding = diagnosis.finding;
  for (std::size_t i = 0; i < job.groups.size(); ++i) {
    const DumpGroup& group = job.groups[i];
    report.groups.push_back({names[i], RankSet::of(group.members)});
    const bool is_place = finding.at && group.name == diagnosis.group_name &&
                          RankSet::of(group.members) == diagnosis.group_ranks;
    if (is_place) {
      finding.at->call.group = names[i];
    }
  }
  report.verdict = verdict_of(diagnosis, std::move(finding));
  return result;
}

}  // namespace rollcall::traces
