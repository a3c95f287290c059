// All members made the same call, and it does not finish: a device, the network, or something the
// recorder does not store.

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "sim/diagnose/dump_case.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

namespace {

// True if the rank knows that a call after `op` has finished: its device works.
bool sees_later(const RankOps& ops, const DumpOp& op) {
  return std::any_of(&op, ops.ops.data() + ops.ops.size(),
                     [](const DumpOp& later) { return later.finished; });
}

// Ranks that have not noticed the end of calls that their peers have finished, and for whose calls the test holds. A
// watchdog that is merely late misses one or two; a failed device, all since it failed.
template <typename Test>
RankSet blind_ranks(const DumpCase& job, const Test& counts) {
  std::size_t most = 0;
  for (const auto& [rank, ops] : job.waits.unobserved) {
    most = std::max(most, ops.size());
  }
  RankSet blind;
  for (const auto& [rank, ops] : job.waits.unobserved) {
    const bool is_blind = 2 * ops.size() > most && !sees_later(*job.view.ops_of(rank), *ops.front());
    if (is_blind && counts(rank, ops)) {
      blind.insert(rank);
    }
  }
  return blind;
}

// `finding.at` becomes the first call of which the first of these ranks has not seen the end.
void blame_devices(const DumpCase& job, const RankSet& blind, Diagnosis& diagnosis) {
  const DumpOp& first = *job.waits.unobserved.at(blind.first()).front();
  Finding& finding = diagnosis.finding;
  finding.kind = FindingKind::stuck_device;
  finding.culprits = blind;
  finding.at->call = name_call(job, *job.view.ops_of(blind.first()), first);
  diagnosis.is_message = first.kind != DumpOp::Kind::collective;
  set_group(job, first.group, diagnosis);
  finding.headline = fmt::format("{} no completions since {}, which its peers have finished",
                                 with_verb(blind, "has seen", "have seen"), call_phrase(finding.at->call));
  finding.advice = fmt::format("look for device errors (Xid, ECC, CUDA) on {}", ranks_phrase(blind));
}

class StallJudge {
 public:
  StallJudge(const DumpCase& job, const WaitNode& node) : job_(job), node_(node) {
    // The setting is the same for the whole job: if one rank records start events, all do.
    const bool knows = std::ranges::any_of(job.view.ranks, &RankOps::has_start_events);
    for (std::size_t i = 0; i < node.ranks.size(); ++i) {
      (node.ops[i]->started ? started_ : knows ? waiting_ : unknown_).insert(node.ranks[i]);
    }
  }

  Diagnosis judge() const {
    Diagnosis diagnosis;
    set_place(job_, node_, {}, diagnosis);
    const RankSet blind = blind_ranks();
    if (!blind.empty()) {
      device_failed(blind, diagnosis);
    } else if (!started_.empty() && !waiting_.empty()) {
      kernel_hangs(diagnosis);
    } else if (const std::optional<Late> late = latecomer()) {
      came_late(*late, diagnosis);
    } else if (std::optional<Diagnosis> splits = suspect_splits(job_, node_)) {
      return *splits;
    } else if (unknown_.empty() && !started_.empty()) {
      nothing_moves(diagnosis);
    } else {
      undecided(diagnosis);
    }
    doubt_splits(diagnosis);
    return diagnosis;
  }

  bool accuses_a_device() const { return !blind_ranks().empty() || (!started_.empty() && !waiting_.empty()); }

 private:
  // If more than half of those that wait are, it is not their devices.
  RankSet blind_ranks() const {
    const RankSet blind = check::blind_ranks(job_, [this](Rank rank, const std::vector<const DumpOp*>& ops) {
      return is_as_late_as_its_peers(rank, *ops.front());
    });
    return 2 * blind.size() > node_.ranks.size() ? RankSet() : blind;
  }

  // True if its dump is not older: it has issued as many calls as its peers. False for Gloo's calls, which run on no
  // device and whose records do not say how they ended.
  bool is_as_late_as_its_peers(Rank rank, const DumpOp& op) const {
    if (op.kind != DumpOp::Kind::collective) {
      return true;
    }
    const GroupCalls& group = job_.view.calls_of(op.group);
    const bool is_known_to_succeed = std::ranges::any_of(group.members, [&op](const GroupMember& member) {
      const DumpOp* other = member.at(op.position);
      return other != nullptr && member.ops->record_of(*other).state == DumpRecord::State::completed;
    });
    if (!is_known_to_succeed) {
      return false;
    }
    const std::int64_t own = group.member(rank)->issued;
    return std::ranges::none_of(group.members,
                                [own](const GroupMember& member) { return member.issued > own; });
  }

  // A rank that came to the call when the others had given up.
  struct Late {
    Rank rank = -1;
    std::int64_t pause_ms = 0;    // before the call
    std::int64_t timeout_ms = 0;  // of the others' calls
  };

  // How long the rank issued nothing before it made the call, by its own clock; empty if its record does not say.
  static std::optional<std::int64_t> pause_before(const RankOps& ops, const DumpOp& op) {
    const DumpRecord& call = ops.record_of(op);
    std::int64_t last = 0;
    for (const DumpRecord& record : ops.dump->records) {
      for (const std::int64_t time : {record.created_ns, record.completed_ns}) {
        last = time < call.created_ns ? std::max(last, time) : last;
      }
    }
    return last > 0 ? std::optional((call.created_ns - last) / 1'000'000) : std::nullopt;
  }

  // The one rank whose pause before the call was longer than the others wait in it, if the others' were short. Its own
  // call may be over: it fails once the others are gone.
  std::optional<Late> latecomer() const {
    if (node_.ops.front()->kind != DumpOp::Kind::collective) {
      return std::nullopt;
    }
    std::optional<Late> late;
    for (const GroupMember& member : job_.view.calls_of(node_.group).members) {
      const DumpOp* op = member.at(node_.ops.front()->position);
      const std::optional<std::int64_t> pause = op != nullptr ? pause_before(*member.ops, *op) : std::nullopt;
      const std::int64_t timeout = op != nullptr ? member.ops->record_of(*op).timeout_ms : 0;
      if (!pause || timeout == 0) {
        return std::nullopt;
      }
      if (*pause > timeout && !late) {
        late = Late{member.rank, *pause, timeout};
      } else if (2 * *pause > timeout) {
        return std::nullopt;
      }
    }
    return late;
  }

  void came_late(const Late& late, Diagnosis& diagnosis) const {
    Finding& finding = diagnosis.finding;
    finding.kind = FindingKind::watchdog_timeout;
    finding.culprits = {late.rank};
    diagnosis.confidence = Confidence::medium;
    diagnosis.alternatives = {FindingKind::stall_all_arrived};
    finding.headline =
        fmt::format("rank {} came to {} {:.3g} s after its call before that; the others wait {:.3g} s",
                    late.rank, call_phrase(finding.at->call), static_cast<double>(late.pause_ms) / 1000,
                    static_cast<double>(late.timeout_ms) / 1000);
    finding.cause =
        fmt::format("rank {} was busy with something else, and the others gave up meanwhile", late.rank);
    finding.advice =
        "raise the group's timeout, divide the work, or let the other ranks wait for a key of the store";
    diagnosis.evidence.push_back(
        fmt::format("the records of all ranks, each by its own clock: only rank {} paused", late.rank));
    diagnosis.would_settle.push_back(
        fmt::format("the log of rank {}: what it did before {}", late.rank, call_phrase(finding.at->call)));
  }

  void device_failed(const RankSet& blind, Diagnosis& diagnosis) const {
    const std::size_t count = job_.waits.unobserved.at(blind.first()).size();
    diagnosis.first_symptom_seq = diagnosis.finding.at->call.seq;
    blame_devices(job_, blind, diagnosis);
    diagnosis.finding.cause =
        "its device failed, or the thread that watches it; the host keeps issuing calls";
    diagnosis.evidence.push_back(fmt::format("{} unfinished on rank {} that a peer has finished",
                                             count == 1 ? "1 call is" : fmt::format("{} calls are", count),
                                             blind.first()));
  }

  void kernel_hangs(Diagnosis& diagnosis) const {
    Finding& finding = diagnosis.finding;
    diagnosis.finding.kind = FindingKind::stuck_device;
    finding.culprits = waiting_;
    finding.at->waiting = started_;
    finding.at->missing = waiting_;
    finding.headline = fmt::format("{} has not started on {}, though issued there",
                                   call_phrase(finding.at->call), ranks_phrase(waiting_));
    finding.cause =
        fmt::format("an earlier kernel never finishes on the device of {}", ranks_phrase(waiting_));
    finding.advice = fmt::format(
        "check the kernels before it on {}: an endless loop, a wait on another stream, a device error",
        ranks_phrase(waiting_));
    diagnosis.evidence.push_back(
        fmt::format("started on {}, only scheduled on {}", ranks_phrase(started_), ranks_phrase(waiting_)));
  }

  void nothing_moves(Diagnosis& diagnosis) const {
    Finding& finding = diagnosis.finding;
    diagnosis.finding.kind = FindingKind::stall_all_arrived;
    const bool rooted = has_root(finding.at->call.op);
    diagnosis.confidence = rooted ? Confidence::medium : Confidence::high;
    finding.headline =
        fmt::format("all ranks started {}{}, and none finishes it", call_phrase(finding.at->call), alike());
    finding.cause =
        has_splits()
            ? "the network, a link, a peer's NIC or the communication library, unless the splits do not fit"
            : "the program is not to blame: the network, a link, a peer's NIC or the communication library";
    finding.advice = "check links and NICs between these ranks; NCCL_DEBUG=INFO names the transports";
    diagnosis.evidence.push_back(fmt::format("{} started it{}", ranks_phrase(started_), alike()));
    diagnosis.would_settle.push_back("the library's own view of the connections (NCCL RAS, ncclras)");
    add_root(rooted, diagnosis);
  }

  void undecided(Diagnosis& diagnosis) const {
    Finding& finding = diagnosis.finding;
    diagnosis.finding.kind = FindingKind::stall_all_arrived;
    diagnosis.confidence = Confidence::low;
    diagnosis.alternatives = {FindingKind::stuck_device};
    if (const RankSet past = ranks_past(job_, node_); !past.empty()) {
      if (has_root(finding.at->call.op)) {
        other_roots(past, diagnosis);
        return;
      }
      if (has_splits()) {
        other_splits(past, diagnosis);
        return;
      }
    }
    if (may_have_more_members()) {
      const RankSet unseen = ranks_without_dump(job_.view.job);
      diagnosis.alternatives = {FindingKind::crashed_rank, FindingKind::stuck_host};
      finding.headline =
          node_.ranks.size() == 1
              ? fmt::format("{} issued {}, and does not finish it", ranks_phrase(ranks_of(node_)),
                            call_phrase(finding.at->call))
              : fmt::format("{} issued {}{}, and none finishes it", ranks_phrase(ranks_of(node_)),
                            call_phrase(finding.at->call), alike());
      const std::string who = unseen.empty() ? "ranks without a dump" : ranks_phrase(unseen);
      finding.cause =
          fmt::format("the dumps do not list the group's members: one of {} may have to make the call, too",
                      unseen.empty() ? "those that left no dump" : who + ", which left no dump,");
      finding.advice = fmt::format("look for what {} did: a log, or a stack (py-spy dump)", who);
      diagnosis.would_settle.push_back(fmt::format("the dumps of {}", unseen.empty() ? "all ranks" : who));
      add_root(has_root(finding.at->call.op), diagnosis);
      return;
    }
    finding.headline =
        fmt::format("all ranks issued {}{}, and none finishes it", call_phrase(finding.at->call), alike());
    finding.cause = "one device may be stuck before it, or the network; the dumps do not say which";
    finding.advice =
        "check the devices and links of these ranks, and let the next run record when calls start";
    diagnosis.evidence.push_back(
        "no rank recorded when calls start, so a call that runs looks like one that waits");
    diagnosis.would_settle.push_back(
        "TORCH_NCCL_ENABLE_TIMING=1 in the next run: it shows on which rank the call has not started");
    diagnosis.would_settle.push_back(
        fmt::format("the stacks of {} (py-spy dump --native)", ranks_phrase(ranks_of(node_))));
    add_root(has_root(finding.at->call.op), diagnosis);
  }

  // A call with a root ends for some ranks before others. Recorders do not store which rank each of them names.
  void other_roots(const RankSet& past, Diagnosis& diagnosis) const {
    Finding& finding = diagnosis.finding;
    const std::string& op = finding.at->call.op;
    finding.kind = FindingKind::root_mismatch;
    diagnosis.alternatives = {FindingKind::stall_all_arrived};
    finding.headline = is_over_for(past, finding.at->call);
    finding.cause =
        fmt::format("a {} ends early for some ranks, but never for ranks that name another root", op);
    finding.advice = "compare the root (src or dst) that the ranks pass there";
    diagnosis.would_settle.push_back(
        fmt::format("the root each rank passes to {}: recorders do not store it", op));
  }

  // An all-to-all ends for each rank once its own parts are exchanged.
  void other_splits(const RankSet& past, Diagnosis& diagnosis) const {
    Finding& finding = diagnosis.finding;
    finding.kind = FindingKind::split_mismatch;
    finding.culprits = ranks_of(node_);
    finding.tie = finding.culprits.size() > 1;
    diagnosis.alternatives = {FindingKind::stuck_device, FindingKind::stall_all_arrived};
    finding.headline = is_over_for(past, finding.at->call);
    finding.cause =
        "they are sent more or less than they expect, or what they exchange is held up on its way";
    finding.advice = "compare the split sizes that the ranks pass there";
  }

  std::string is_over_for(const RankSet& past, const Call& call) const {
    return fmt::format("{} in {}, which is over for {}", with_verb(ranks_of(node_), "waits", "wait"),
                       call_phrase(call), ranks_phrase(past));
  }

  bool has_splits() const { return shapes_may_differ(recorded_call(job_, node_).op); }

  const char* alike() const { return has_splits() ? "" : " with equal arguments"; }

  // The splits of an all-to-all are not recorded. If they do not fit, it hangs like one on a broken link or device.
  // A device that failed is blamed for a call before that of the node.
  void doubt_splits(Diagnosis& diagnosis) const {
    if (!shapes_may_differ(diagnosis.finding.at->call.op)) {
      return;
    }
    diagnosis.confidence = std::max(diagnosis.confidence, Confidence::medium);
    if (diagnosis.finding.kind != FindingKind::split_mismatch) {
      diagnosis.alternatives.insert(diagnosis.alternatives.begin(), FindingKind::split_mismatch);
    }
    diagnosis.would_settle.insert(diagnosis.would_settle.begin(),
                                  splits_to_compare(diagnosis.finding.at->call));
  }

  // Gloo's recorder does not list the members of a group: they are those that are seen to use it.
  bool may_have_more_members() const {
    const RankSet unseen = ranks_without_dump(job_.view.job);
    const GroupCalls& group = job_.view.calls_of(node_.group);
    const bool are_members_unseen = std::ranges::any_of(
        group.members, [&unseen](const GroupMember& member) { return unseen.contains(member.rank); });
    const DumpGroup& recorded = job_.view.job.groups[node_.group];
    return recorded_call(job_, node_).is_of_gloo() && (recorded.is_by_use || recorded.is_everybody) &&
           !are_members_unseen;
  }

  void add_root(bool rooted, Diagnosis& diagnosis) const {
    if (!rooted) {
      return;
    }
    diagnosis.alternatives.insert(diagnosis.alternatives.begin(), FindingKind::root_mismatch);
    diagnosis.would_settle.insert(diagnosis.would_settle.begin(),
                                  fmt::format("the root each rank passes to {}: recorders do not store it",
                                              diagnosis.finding.at->call.op));
  }

  const DumpCase& job_;
  const WaitNode& node_;
  RankSet started_;
  RankSet waiting_;  // scheduled, where starts are recorded
  RankSet unknown_;
};

}  // namespace

std::optional<Diagnosis> judge_blind(const DumpCase& job) {
  constexpr std::size_t calls_min = 3;  // a watchdog that is late misses fewer
  if (job.progress != Progress::assumed && !stands_still(job.progress)) {
    return std::nullopt;
  }
  const RankSet blind =
      blind_ranks(job, [](Rank, const std::vector<const DumpOp*>& ops) { return ops.size() >= calls_min; });
  if (blind.empty() || 2 * blind.size() >= job.view.ranks.size()) {
    return std::nullopt;
  }
  Diagnosis diagnosis;
  diagnosis.confidence = Confidence::medium;
  diagnosis.alternatives = {FindingKind::stuck_host};
  diagnosis.finding.at = Place{{}, blind, {}};
  blame_devices(job, blind, diagnosis);
  diagnosis.finding.cause = "its device failed, or the thread that watches it";
  for (const Rank rank : blind.to_vector()) {
    diagnosis.evidence.push_back(fmt::format("{} calls are unfinished on rank {} that a peer has finished",
                                             job.waits.unobserved.at(rank).size(), rank));
  }
  diagnosis.would_settle.push_back(
      fmt::format("the kernel's log (dmesg, Xid) of the hosts of {}", ranks_phrase(blind)));
  return diagnosis;
}

std::optional<Diagnosis> judge_device(const DumpCase& job) {
  for (const std::size_t index : job.roots.complete) {
    const StallJudge judge(job, job.waits.nodes[index]);
    if (judge.accuses_a_device()) {
      return judge.judge();
    }
  }
  return std::nullopt;
}

std::optional<Diagnosis> judge_stall(const DumpCase& job) {
  const auto widest = std::ranges::max_element(
      job.roots.complete, {}, [&job](std::size_t index) { return job.waits.nodes[index].ranks.size(); });
  if (widest == job.roots.complete.end()) {
    return std::nullopt;
  }
  return StallJudge(job, job.waits.nodes[*widest]).judge();
}

}  // namespace rollcall::check
