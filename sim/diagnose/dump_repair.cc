// Blame by repair, for recordings: the smallest change of the ranks' calls that explains why the job made no progress.

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "sim/base/expects.h"
#include "sim/diagnose/dump_case.h"
#include "sim/diagnose/dump_compare.h"
#include "sim/diagnose/list_replay.h"
#include "sim/repair/repair.h"
#include "sim/wording/phrasing.h"
#include "sim/wording/wording_repair.h"

namespace rollcall::check {
namespace {

constexpr Rank ranks_max = 256;
constexpr std::size_t records_max = 200'000;  // of all ranks

// True for findings that calls that do not belong together may cause.
bool is_about_calls(FindingKind kind) {
  switch (kind) {
    case FindingKind::stuck_host:
    case FindingKind::early_exit:
    case FindingKind::partial_subgroup:
    case FindingKind::cross_group_deadlock:
    case FindingKind::p2p_mismatch:
    case FindingKind::op_type_mismatch:
    case FindingKind::size_mismatch:
    case FindingKind::dtype_mismatch:
    case FindingKind::skipped_collective:
    case FindingKind::extra_collective:
    case FindingKind::crashed_rank:
    case FindingKind::stall_all_arrived:
    case FindingKind::no_fault:
      return true;
    default:
      return false;
  }
}

struct Programs {
  std::vector<RankProgram> lists{};  // of all ranks
  RankSet without_dump{};            // whose lists are empty
};

// The calls of all ranks, as far as they are recorded.
class RecordedPrograms {
 public:
  explicit RecordedPrograms(const DumpCase& job) : job_(job), dumps_(job.view.job) { name_groups(); }

  // Null if the beginning of a list is missing, or if a recorded call cannot be expressed as a program's call.
  std::optional<Programs> read() {
    Programs programs;
    if (!is_fit()) {
      return std::nullopt;
    }
    for (const RankOps& ops : job_.view.ranks) {
      add_unknown(ops.dump->rank, programs);
      RankProgram& program = programs.lists.emplace_back();
      program.rank = ops.dump->rank;
      program.is_whole = false;
      for (const DumpOp& op : ops.ops) {
        if (!add(ops, op, program)) {
          return std::nullopt;
        }
      }
    }
    for (const DumpGroup& group : dumps_.groups) {
      add_unknown(group.members.empty() ? 0 : group.members.back() + 1, programs);
    }
    return programs;
  }

 private:
  // Checked before anything is built: a large job would be dropped anyway.
  bool is_fit() const {
    std::size_t records = 0;
    for (const RankDump& dump : dumps_.ranks) {
      records += dump.records.size();
      if (!dump.from_start || dump.rank >= ranks_max) {
        return false;
      }
    }
    return records <= records_max && std::ranges::all_of(dumps_.groups, [](const DumpGroup& group) {
             return group.members.empty() || group.members.back() < ranks_max;
           });
  }

  // Adds empty lists for ranks below `end` without a dump.
  static void add_unknown(Rank end, Programs& programs) {
    while (static_cast<Rank>(programs.lists.size()) < end) {
      RankProgram& program = programs.lists.emplace_back();
      program.rank = static_cast<Rank>(programs.lists.size()) - 1;
      program.is_whole = false;
      programs.without_dump.insert(RankSet{program.rank});
    }
  }

  void name_groups() {
    std::set<std::string> taken;
    for (const DumpGroup& group : dumps_.groups) {
      std::string name = group_phrase(group);
      if (!taken.insert(name).second) {
        name = fmt::format("{} (group {})", name, group.name);
        taken.insert(name);
      }
      names_.push_back(std::move(name));
    }
  }

  std::uint32_t group_in(RankProgram& program, std::uint32_t group) const {
    const auto known = std::ranges::find(program.groups, names_[group], &ProgramGroup::name);
    if (known != program.groups.end()) {
      return static_cast<std::uint32_t>(known - program.groups.begin());
    }
    const DumpGroup& recorded = dumps_.groups[group];
    program.groups.push_back(
        {.name = names_[group], .ranks = recorded.members, .is_by_use = recorded.is_by_use});
    return static_cast<std::uint32_t>(program.groups.size() - 1);
  }

  bool add(const RankOps& ops, const DumpOp& op, RankProgram& program) const {
    const auto batch = static_cast<std::int64_t>(program.calls.size());
    const std::vector<Rank>& members = dumps_.groups[op.group].members;
    if (!std::ranges::is_sorted(members) || !std::ranges::binary_search(members, program.rank)) {
      return false;
    }
    for (const std::uint32_t index : ops.parts_of(op)) {
      const DumpRecord& record = ops.dump->records[index];
      const DumpCall& recorded = dumps_.calls[record.call];
      const auto kind = parse_op_kind(recorded.op);
      if (!kind || (op.kind != DumpOp::Kind::collective && !recorded.is_message())) {
        return false;
      }
      ProgramCall call{.kind = *kind,
                       .group = names_[op.group],
                       .seq = recorded.is_message() ? record.message_seq() : record.collective_seq,
                       .numel = 0};
      if (!shapes_may_differ(recorded.op)) {
        call.numel = recorded_elements(recorded);
        call.dtype = recorded.dtype();
      }
      if (const DumpFrame* frame = user_frame(dumps_, record)) {
        call.label = frame->function;
        call.site = fmt::format("{}:{}", frame->file, frame->line);
      }
      if (recorded.is_message()) {
        call.peer =
            job_.view.member_of(op.group, recorded.op == "send" ? recorded.destination : recorded.source);
        if (call.peer < 0) {
          return false;
        }
      }
      call.batch = op.kind == DumpOp::Kind::batch ? batch : -1;
      call.group_index = group_in(program, op.group);
      call.pairing = std::to_string(job_.view.tokens[record.call]);
      program.calls.push_back(std::move(call));
    }
    return true;
  }

  const DumpCase& job_;
  const JobDump& dumps_;
  std::vector<std::string> names_;  // of groups, all different
};

// How many calls of a rank's list are known to have succeeded, one after the other from its start.
std::size_t proven_calls(const RankOps& ops, const RankProgram& program) {
  std::size_t calls = 0;
  for (const DumpOp& op : ops.ops) {
    if (!op.proven) {
      break;
    }
    calls += op.part_count;
  }
  return std::min(calls, program.calls.size());
}

class Replayed : public Outlook {
 public:
  explicit Replayed(const ListReplay& replay) : replay_(replay) {}

  bool can_run_again() const override { return true; }
  std::optional<FindingKind> outcome_of(const CallEdits& edits) const override {
    return replay_.is_explained_with(edits) ? FindingKind::ok : FindingKind::work_never_completed;
  }

 private:
  const ListReplay& replay_;
};

// True if all calls that the recorder knows to be over are over in the replay, too. Otherwise the lists lack calls that
// let the ranks continue.
bool is_like_the_job(const DumpCase& job, const ListReplay& replay,
                     const std::vector<RankProgram>& programs) {
  return std::ranges::all_of(job.view.ranks, [&](const RankOps& ops) {
    const auto rank = static_cast<std::size_t>(ops.dump->rank);
    return replay.made()[rank] >= proven_calls(ops, programs[rank]);
  });
}

// The kind of finding if `belongs` should have been called where `is` was made.
FindingKind difference_kind(const ProgramCall& is, const ProgramCall& belongs) {
  if (is_point_to_point(is.kind) || is_point_to_point(belongs.kind)) {
    return FindingKind::p2p_mismatch;
  }
  if (is.kind != belongs.kind) {
    return FindingKind::op_type_mismatch;
  }
  return is.dtype != belongs.dtype ? FindingKind::dtype_mismatch : FindingKind::size_mismatch;
}

// Ranks that the recorder knows to wait, whether or not their lists say for which rank, and those of Gloo, whose
// recorder skips messages.
RankSet may_go_on(const DumpCase& job) {
  RankSet ranks = ranks_without_messages(job);
  for (const RankOps& ops : job.view.ranks) {
    if (std::ranges::any_of(ops.ops, [](const DumpOp& op) { return !op.finished; })) {
      ranks.insert(RankSet{ops.dump->rank});
    }
  }
  return ranks;
}

// The kind that diagnoses of recordings use for a finding of runs.
FindingKind recorded_kind(FindingKind kind, const CallEdit& edit) {
  switch (kind) {
    case FindingKind::missing_participant:
      return edit.dropped > 0 ? FindingKind::extra_collective : FindingKind::skipped_collective;
    case FindingKind::unmatched_send:
    case FindingKind::unmatched_recv:
      return FindingKind::p2p_mismatch;
    default:
      return kind;
  }
}

Call named(const ProgramCall& call) {
  return {.op = std::string(to_string(call.kind)),
          .group = call.group,
          .seq = call.seq,
          .numel = call.numel,
          .dtype = call.dtype,
          .reduce_op = {},
          .peer = call.peer,
          .device = {},
          .label = call.label,
          .site = call.site};
}

// Sets the group of a place: one with its name that has a rank there.
void set_group_of(const DumpCase& job, const Place& place, Diagnosis& diagnosis) {
  const std::vector<DumpGroup>& groups = job.view.job.groups;
  const RankSet& ranks = place.waiting.empty() ? place.missing : place.waiting;
  for (std::uint32_t group = 0; group < groups.size(); ++group) {
    if (group_phrase(groups[group]) == place.call.group &&
        std::ranges::binary_search(groups[group].members, ranks.first())) {
      set_group(job, group, diagnosis);
      return;
    }
  }
}

void blame(const DumpCase& job, const FoundRepair& repair, const std::vector<RankProgram>& programs,
           Diagnosis& diagnosis) {
  Finding& finding = diagnosis.finding;
  const CallEdit& first = repair.edits.front();
  const std::vector<ProgramCall>& calls = programs[static_cast<std::size_t>(first.rank)].calls;
  expects(!calls.empty() || !first.inserted.empty(), "a change is of a call");
  const ProgramCall& own = calls.empty()
                               ? first.inserted.front()
                               : calls[std::min(static_cast<std::size_t>(first.at), calls.size() - 1)];
  finding.tie = false;
  finding.culprits = repair.ranks;
  finding.suspects.clear();
  finding.suspicion.clear();
  if (first.dropped > 0 && !first.inserted.empty()) {
    finding.kind = difference_kind(own, first.inserted.front());
  }
  std::vector<Place> places;
  for (const WaitNode& node : job.waits.nodes) {
    places.push_back({name_node(job, node), ranks_of(node), blockers_of(node)});
  }
  word_culprits(repair.edits, programs, places, finding);
  finding.kind = recorded_kind(finding.kind, first);
  if (!finding.at) {
    finding.at = Place{named(own), {}, repair.ranks};
  }
  const auto kind = parse_op_kind(finding.at->call.op);
  diagnosis.is_message = kind && is_point_to_point(*kind);
  set_group_of(job, *finding.at, diagnosis);
  // Evidence against other ranks no longer counts.
  diagnosis.alternatives.clear();
  diagnosis.evidence.clear();
  diagnosis.may_be_healthy = false;
  diagnosis.confidence = std::max(diagnosis.confidence, Confidence::medium);
}

// True if the repair outweighs calls that are not listed, although those alone could explain the hang.
bool outweighs(const ListReplay& replay, const FoundRepair& repair, const Diagnosis& diagnosis) {
  const CallEdit& first = repair.edits.front();
  const bool is_other_call = first.dropped > 0 && !first.inserted.empty();
  if (diagnosis.finding.kind == FindingKind::crashed_rank && !is_other_call) {
    return false;  // its process is gone, and its calls agree with the others'
  }
  return diagnosis.finding.kind != FindingKind::partial_subgroup &&
         (repair.score < 0 || (repair.supported && replay.has_odd()));
}

// True if all ranks could have made calls that do not match, although no rank waits. Sizes of parts are not recorded,
// and no rank waits for one whose process is gone.
bool may_disagree_unseen(const Programs& programs, const Diagnosis& diagnosis) {
  return diagnosis.finding.kind == FindingKind::stall_all_arrived || !programs.without_dump.empty();
}

struct Search {
  bool applies = false;  // true if the lists are complete enough to decide whether calls are to blame
  std::optional<FoundRepair> repair{};
};

Search search(const DumpCase& job, const Programs& programs, const Diagnosis& diagnosis) {
  const ListReplay replay(programs.lists, {.lists = programs.without_dump, .ends = may_go_on(job)});
  if ((replay.hang().is_empty() && !may_disagree_unseen(programs, diagnosis)) ||
      !is_like_the_job(job, replay, programs.lists)) {
    return {};
  }
  std::optional<FoundRepair> repair =
      find_repair(CallLists(programs.lists), replay.hang(), Replayed(replay)).found;
  if (replay.is_explained() && (!repair || !outweighs(replay, *repair, diagnosis))) {
    return {};
  }
  return {true, std::move(repair)};
}

// True if ranks without a dump may be gone. No rank has to wait for a Gloo rank whose process is gone; it is enough
// that several ranks, or all, have stopped for no other reason.
bool may_be_gone(const DumpCase& job, const RankSet& without_dump, const Finding& finding) {
  const bool are_few = 2 * without_dump.size() < job.view.ranks.size();
  const bool is_open = finding.kind == FindingKind::no_fault ||
                       (finding.kind == FindingKind::stuck_host && finding.culprits.size() > 1);
  return !without_dump.empty() && are_few && is_open && !ranks_without_messages(job).empty();
}

// Gloo ends the process of a rank that is sent more than it expects. Then no rank waits for it: its peers' calls fail.
void blame_without_dump(const RankSet& ranks, bool is_at_rest, Diagnosis& diagnosis) {
  Finding& finding = diagnosis.finding;
  finding = Finding();
  finding.kind = FindingKind::crashed_rank;
  finding.culprits = ranks;
  const std::string who = ranks_phrase(ranks);
  finding.headline = fmt::format("{} left no dump, as {} whose process is gone", who,
                                 ranks.size() == 1 ? "a rank does" : "ranks do");
  finding.cause =
      "ranks that ended or were killed write no dump, and Gloo ends ranks that are sent more than they "
      "expect";
  finding.advice = fmt::format("read the log of {} for an exception, a signal or gloo::EnforceNotMet", who);
  diagnosis.confidence = Confidence::low;
  diagnosis.may_be_healthy = !is_at_rest;
  diagnosis.alternatives.clear();
  diagnosis.evidence = {"the calls that the others list do not contradict each other"};
  diagnosis.would_settle = {fmt::format("the log of {}, or the dump if it was only lost", who)};
}

}  // namespace

void mend(const DumpCase& job, Diagnosis& diagnosis) {
  if (job.progress == Progress::running || !is_about_calls(diagnosis.finding.kind)) {
    return;
  }
  // NCCL's recorder says itself which calls are unfinished. With Gloo's, a job that has stopped may look like one at
  // work.
  if (diagnosis.finding.kind == FindingKind::no_fault && ranks_without_messages(job).empty()) {
    return;
  }
  const std::optional<Programs> programs = RecordedPrograms(job).read();
  if (!programs) {
    return;
  }
  Finding& finding = diagnosis.finding;
  const auto [applies, repair] = search(job, *programs, diagnosis);
  if (!applies) {
    if (may_be_gone(job, programs->without_dump, finding)) {
      blame_without_dump(programs->without_dump, stands_still(job.progress), diagnosis);
    }
    return;
  }
  if (!repair) {
    diagnosis.confidence = std::max(diagnosis.confidence, Confidence::medium);
    return;
  }
  if (!repair->alternatives.empty()) {
    diagnosis.confidence = Confidence::low;
  }
  const auto is_among = std::ranges::find(repair->alternatives, finding.culprits, &Alternative::ranks);
  const bool is_same = !finding.tie && finding.culprits == repair->ranks;
  const bool is_as_good =
      !is_same && !finding.tie && !repair->supported && is_among != repair->alternatives.end();
  if (!is_same && !is_as_good) {
    if (!repair->alternatives.empty()) {
      return;
    }
    blame(job, *repair, programs->lists, diagnosis);
  }
  const CallEdits& edits = is_as_good ? is_among->edits : repair->edits;
  finding.repair =
      Repair{repair_steps(edits, programs->lists), static_cast<std::int64_t>(repair->alternatives.size())};
}

}  // namespace rollcall::check
