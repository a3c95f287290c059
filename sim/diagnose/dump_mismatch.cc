// Calls that met and disagree in operation, shape or dtype, because a rank left one out, made an extra
// one, or joined early and shadows them wrongly. Also messages whose two ends disagree.

#include <algorithm>
#include <functional>

#include <fmt/core.h>

#include "sim/diagnose/dump_case.h"
#include "sim/diagnose/dump_compare.h"
#include "sim/diagnose/dump_habits.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

namespace {

// The members that made one and the same call.
struct Party {
  std::uint64_t token = 0;
  std::vector<const GroupMember*> members;
};

std::vector<Party> parties_of(const GroupCalls& group, std::int64_t position) {
  std::vector<Party> parties;
  for (const GroupMember& member : group.members) {
    const DumpOp* op = member.at(position);
    if (op == nullptr) {
      continue;
    }
    auto party = std::ranges::find(parties, op->token, &Party::token);
    if (party == parties.end()) {
      party = parties.insert(parties.end(), Party{op->token, {}});
    }
    party->members.push_back(&member);
  }
  std::ranges::stable_sort(parties, std::greater{}, [](const Party& party) { return party.members.size(); });
  return parties;
}

// The members that are to blame, and the member that their calls are compared with.
struct Blamed {
  std::vector<const GroupMember*> odd;
  const GroupMember* usual = nullptr;
  bool tie = false;            // nothing decides: all are named
  bool by_habit = false;       // no majority, but one side broke with its own past
  bool by_present = false;     // by a majority that the ranks without a dump could overturn
  bool against_habit = false;  // by such a majority, which broke with its own past
  bool joined = false;         // the odd ones shadow calls in Join
  bool even = false;           // and no majority of ranks with inputs says which calls to repeat
};

class MismatchJudge {
 public:
  MismatchJudge(const DumpCase& job, const WaitNode& node)
      : job_(job),
        group_(job.view.calls_of(node.group)),
        node_(node),
        parties_(parties_of(group_, node.position)) {}

  bool disagrees() const { return parties_.size() > 1; }

  Diagnosis judge() const {
    const Blamed blamed = blame();
    const Shift shift =
        blamed.tie ? Shift{} : find_shift(job_.view, *blamed.odd.front(), *blamed.usual, node_.position);
    Diagnosis diagnosis;
    diagnosis.confidence = blamed.tie || blamed.even || blamed.against_habit ? Confidence::low
                           : blamed.by_habit || blamed.by_present            ? Confidence::medium
                                                                             : Confidence::high;
    diagnosis.finding.tie = blamed.tie;
    for (const GroupMember* member : blamed.odd) {
      diagnosis.finding.culprits.insert(member->rank);
    }
    set_place(job_, node_, {}, diagnosis);
    add_variants(diagnosis);
    name_kind(blamed, shift, diagnosis);
    move_to_origin(blamed, shift, diagnosis);
    word(blamed, shift, diagnosis);
    return diagnosis;
  }

 private:
  Blamed blame() const {
    Blamed blamed = blame_hooks();
    if (blamed.joined) {
      return blamed;
    }
    const std::size_t most = parties_[0].members.size();
    const std::size_t next = parties_[1].members.size();
    if (most > next + without_dump()) {
      return against_all_but(parties_[0]);
    }
    blamed = blame_without_majority();
    const bool spares_most = std::ranges::find(blamed.odd, parties_[0].members.front()) == blamed.odd.end();
    if (most > next && !spares_most) {
      const bool contradicts = blamed.by_habit;
      blamed = against_all_but(parties_[0]);
      blamed.by_present = true;
      blamed.against_habit = contradicts;
    }
    return blamed;
  }

  // A hook exists to repeat what the ranks with inputs do, however few they are. But if one of these agrees with the
  // hooks, it is another rank that differs.
  Blamed blame_hooks() const {
    Blamed blamed;
    std::size_t all = 0;
    for (const Party& party : parties_) {
      all += party.members.size();
      std::size_t shadows = 0;
      for (const GroupMember* member : party.members) {
        if (is_join_shadow(job_.view.job, member->ops->record_of(*member->at(node_.position)))) {
          blamed.odd.push_back(member);
          ++shadows;
        } else if (blamed.usual == nullptr) {
          blamed.usual = member;
        }
      }
      if (shadows > 0 && shadows < party.members.size()) {
        return {};
      }
    }
    blamed.joined = !blamed.odd.empty() && blamed.usual != nullptr;
    blamed.even = 2 * blamed.odd.size() >= all;
    return blamed;
  }

  std::size_t without_dump() const {
    return static_cast<std::size_t>(std::ranges::count(group_.members, nullptr, &GroupMember::ops));
  }

  Blamed against_all_but(const Party& right) const {
    Blamed blamed;
    blamed.usual = right.members.front();
    for (const Party& party : parties_) {
      if (party.token != right.token) {
        blamed.odd.insert(blamed.odd.end(), party.members.begin(), party.members.end());
      }
    }
    return blamed;
  }

  // For two ranks, or two halves: blames the side that broke with its habit. Failing that, all.
  Blamed blame_without_majority() const {
    std::vector<const Party*> faithful;
    for (const Party& party : parties_) {
      if (std::ranges::none_of(party.members, [this](const GroupMember* m) { return departs_here(*m); })) {
        faithful.push_back(&party);
      }
    }
    Blamed blamed;
    if (faithful.size() == 1) {
      blamed = against_all_but(*faithful.front());
      blamed.by_habit = true;
      return blamed;
    }
    blamed.usual = parties_.front().members.front();
    blamed.tie = true;
    for (const Party& party : parties_) {
      blamed.odd.insert(blamed.odd.end(), party.members.begin(), party.members.end());
    }
    return blamed;
  }

  bool departs_here(const GroupMember& member) const {
    const DumpOp* op = member.at(node_.position);
    const std::optional<Departure> departure = find_departure(*member.ops, *op);
    return departure && departure->op <= op && departure->context > 1;
  }

  const DumpCall& recorded(const GroupMember& member) const {
    return job_.view.job.calls[member.ops->record_of(*member.at(node_.position)).call];
  }

  // The calls of two members in this place; of coalesced calls, the first two that differ.
  std::pair<const DumpCall*, const DumpCall*> pair_of(const GroupMember& odd,
                                                      const GroupMember& usual) const {
    const auto odd_parts = odd.ops->parts_of(*odd.at(node_.position));
    const auto usual_parts = usual.ops->parts_of(*usual.at(node_.position));
    if (odd_parts.size() == usual_parts.size()) {
      for (std::size_t i = 0; i < odd_parts.size(); ++i) {
        const DumpCall& a = job_.view.job.calls[odd.ops->dump->records[odd_parts[i]].call];
        const DumpCall& b = job_.view.job.calls[usual.ops->dump->records[usual_parts[i]].call];
        if (a != b) {
          return {&a, &b};
        }
      }
    }
    return {&recorded(odd), &recorded(usual)};
  }

  const GroupMember& odd_one(const Blamed& blamed) const {
    return blamed.tie ? *parties_[1].members.front() : *blamed.odd.front();
  }

  // The kind of mismatch within the pair itself.
  FindingKind plain_kind(const Blamed& blamed) const {
    const auto [odd, usual] = pair_of(odd_one(blamed), *blamed.usual);
    const DumpCall& a = *odd;
    const DumpCall& b = *usual;
    if (a.op != b.op) {
      return FindingKind::op_type_mismatch;
    }
    return same_shapes(a, b) ? FindingKind::dtype_mismatch : FindingKind::size_mismatch;
  }

  void name_kind(const Blamed& blamed, const Shift& shift, Diagnosis& diagnosis) const {
    const FindingKind plain = plain_kind(blamed);
    if (blamed.joined) {
      diagnosis.finding.kind = FindingKind::join_shadow_mismatch;
      return;
    }
    diagnosis.finding.kind = kind_of(shift.kind, plain);
    if (shift.kind == Shift::Kind::unclear) {
      diagnosis.alternatives = {FindingKind::skipped_collective, FindingKind::extra_collective,
                                FindingKind::desync_after_exception};
    } else if (shift.rival != Shift::Kind::none) {
      diagnosis.alternatives = {kind_of(shift.rival, plain)};
    }
    if (!diagnosis.alternatives.empty()) {
      diagnosis.confidence = std::max(diagnosis.confidence, Confidence::medium);
    }
  }

  static FindingKind kind_of(Shift::Kind kind, FindingKind plain) {
    switch (kind) {
      case Shift::Kind::skipped:
        return FindingKind::skipped_collective;
      case Shift::Kind::extra:
        return FindingKind::extra_collective;
      case Shift::Kind::repeated:
        return FindingKind::desync_after_exception;
      case Shift::Kind::none:
      case Shift::Kind::unclear:
        break;
    }
    return plain;
  }

  void add_variants(Diagnosis& diagnosis) const {
    for (const Party& party : parties_) {
      Variant variant;
      for (const GroupMember* member : party.members) {
        variant.ranks.insert(member->rank);
      }
      const GroupMember& first = *party.members.front();
      variant.call = name_call(job_, *first.ops, *first.at(node_.position));
      diagnosis.variants.push_back(std::move(variant));
    }
  }

  // Reports a shift where it began: with the odd rank's call there, or with the one that it left out.
  void move_to_origin(const Blamed& blamed, const Shift& shift, Diagnosis& diagnosis) const {
    const bool is_shift = shift.kind != Shift::Kind::none && shift.kind != Shift::Kind::unclear;
    if (blamed.joined || !is_shift || shift.position == node_.position) {
      return;
    }
    const GroupMember& member = shift.kind == Shift::Kind::skipped ? *blamed.usual : *blamed.odd.front();
    if (const DumpOp* op = member.at(shift.position)) {
      diagnosis.first_symptom_seq = diagnosis.finding.at->call.seq;
      diagnosis.finding.at->call = name_call(job_, *member.ops, *op);
    }
  }

  void word(const Blamed& blamed, const Shift& shift, Diagnosis& diagnosis) const;

  const DumpCase& job_;
  const GroupCalls& group_;
  const WaitNode& node_;
  std::vector<Party> parties_;
};

void MismatchJudge::word(const Blamed& blamed, const Shift& shift, Diagnosis& diagnosis) const {
  Finding& finding = diagnosis.finding;
  const std::string who = ranks_phrase(finding.culprits);
  const GroupMember& odd = odd_one(blamed);
  const auto pair = pair_of(odd, *blamed.usual);
  const std::string mine = arguments_phrase(*pair.first);
  const std::string theirs = arguments_phrase(*pair.second);
  const Call odd_call = name_call(job_, *odd.ops, *odd.at(node_.position));
  const Call usual_call = name_call(job_, *blamed.usual->ops, *blamed.usual->at(node_.position));
  const std::string place = call_phrase(usual_call);
  diagnosis.evidence.push_back(fmt::format("in {} {} has {}{}, {} has {}{}", place, ranks_phrase({odd.rank}),
                                           mine, origin_of(odd_call), ranks_phrase({blamed.usual->rank}),
                                           theirs, origin_of(usual_call)));
  const std::string there = shift.is_older ? fmt::format("a call before {}, the oldest that is recorded",
                                                         call_phrase(finding.at->call))
                                           : call_phrase(finding.at->call);
  switch (shift.kind) {
    case Shift::Kind::skipped:
      finding.headline = fmt::format("{} left out {}; its next calls meet the wrong ones", who, there);
      finding.cause = fmt::format("from {} on, the calls of {} are those the others make {} later",
                                  call_phrase(finding.at->call), who,
                                  shift.count == 1 ? "one call" : fmt::format("{} calls", shift.count));
      finding.advice = "look for a branch around that call that depends on the rank or on local data";
      break;
    case Shift::Kind::extra:
      finding.headline =
          fmt::format("{} alone made {}; everything after it is off by {}", who, there, shift.count);
      if (odd.at(shift.position + shift.count) != nullptr) {
        finding.cause = fmt::format("the calls of {} after it are those the others make earlier", who);
        finding.advice =
            "make the call on all ranks or on none; an async call that no rank waits for counts too";
      } else {
        finding.cause = fmt::format(
            "{} made the call before it once more: its loop went on when the others' had ended", who);
        finding.advice =
            "give all ranks equally many inputs there, let them agree to end the loop (all_reduce a flag), "
            "or make the call on none";
      }
      break;
    case Shift::Kind::repeated:
      finding.headline = fmt::format("{} repeated its calls from {} on", who, there);
      finding.cause = fmt::format(
          "{} made the same calls twice, as code does that catches an exception and starts the step again; "
          "the others did not",
          who);
      finding.advice = "let all ranks agree to repeat a step (all_reduce a flag), or let the job fail";
      break;
    case Shift::Kind::none:
    case Shift::Kind::unclear:
      finding.headline = fmt::format("{} and the other ranks disagree in {}", who, place);
      finding.cause = fmt::format("{} against {}", mine, theirs);
      finding.advice =
          pair.first->op != pair.second->op
              ? fmt::format(
                    "find out what brings {} to another call there: a branch, the end of its data, an "
                    "exception that it catches",
                    who)
              : "compare what the ranks pass there: local batch sizes, dtypes, branches on the rank";
      break;
  }
  if (blamed.joined) {
    finding.headline = fmt::format("{} joined early and shadows {} with another call", who, place);
    finding.cause = fmt::format("Join's hook makes {}, the ranks with inputs make {}", mine, theirs);
    finding.advice = "make the main_hook of the joinable issue exactly the collectives of one iteration";
  }
  if (blamed.even) {
    diagnosis.would_settle.push_back(
        "which collectives an iteration makes: a hook that makes too few looks like an iteration that makes "
        "too many");
  }
  if (blamed.tie) {
    finding.headline = fmt::format("{} disagree in {}, and no majority decides who is right",
                                   ranks_phrase(finding.culprits), place);
    diagnosis.would_settle.push_back(
        "the code of both call sites, or a dump with stacks (TORCH_INCLUDE_STACK_TRACE)");
  }
  if (blamed.by_present) {
    diagnosis.would_settle.push_back("the dumps that are missing: with them, another side could be larger");
  }
  if (shift.kind == Shift::Kind::unclear) {
    diagnosis.would_settle.push_back(
        "a dump with stacks (pickle, TORCH_INCLUDE_STACK_TRACE=1): they distinguish a call left out from one "
        "too many and from a repeated step");
  }
}

// Judges the two ends of a message, or of one message of a batch.
std::optional<Diagnosis> judge_message(const DumpCase& job, const WaitNode& node) {
  const RankOps& ops = *job.view.ops_of(node.ranks.front());
  for (const Counterpart& other : job.messages.counterparts(ops, *node.ops.front())) {
    if (other.op == nullptr) {
      continue;
    }
    const DumpCall& mine = job.view.job.calls[ops.dump->records[other.own].call];
    const DumpCall& theirs = job.view.job.calls[other.ops->dump->records[other.record].call];
    if (mine.inputs == theirs.inputs && mine.input_dtypes == theirs.input_dtypes) {
      continue;
    }
    Diagnosis diagnosis;
    diagnosis.finding.kind = FindingKind::p2p_mismatch;
    set_place(job, node, {}, diagnosis);
    diagnosis.finding.at->call = name_message(job, ops, other.own);
    const auto departs = [](const RankOps& side, const DumpOp& op) {
      const std::optional<Departure> departure = find_departure(side, op);
      return departure && departure->op == &op && departure->context > 1;
    };
    const bool i_depart = departs(ops, *node.ops.front());
    const bool they_depart = departs(*other.ops, *other.op);
    diagnosis.finding.tie = i_depart == they_depart;
    if (i_depart || !they_depart) {
      diagnosis.finding.culprits.insert(ops.dump->rank);
    }
    if (they_depart || !i_depart) {
      diagnosis.finding.culprits.insert(other.rank);
    }
    diagnosis.confidence = diagnosis.finding.tie ? Confidence::medium : Confidence::high;
    diagnosis.finding.headline = fmt::format("{} of rank {} and {} of rank {} disagree", mine.op,
                                             ops.dump->rank, theirs.op, other.rank);
    diagnosis.finding.cause = fmt::format("rank {} has {}, rank {} has {}", ops.dump->rank,
                                          arguments_phrase(mine), other.rank, arguments_phrase(theirs));
    diagnosis.finding.advice = "send and receive the same number of elements of the same dtype";
    diagnosis.evidence.push_back(diagnosis.finding.cause);
    if (!diagnosis.finding.tie) {
      diagnosis.evidence.push_back(
          fmt::format("earlier messages of {} were different", ranks_phrase(diagnosis.finding.culprits)));
    }
    return diagnosis;
  }
  return std::nullopt;
}

// True if equal positions are the same call, however it ended. Gloo's messages take numbers on some ranks only.
bool is_lined_up(const GroupCalls& group) {
  return !group.counted && std::ranges::all_of(group.members, [&](const GroupMember& member) {
    return member.ops == nullptr ||
           (member.ops->dump->from_start &&
            std::ranges::none_of(member.ops->dump->records, [&](const DumpRecord& record) {
              return record.group == group.group && record.unrecorded > 0;
            }));
  });
}

// The call of all members at `position`; null if it is not over for each.
std::optional<WaitNode> ended_call(const GroupCalls& group, std::int64_t position) {
  WaitNode node;
  node.group = group.group;
  node.position = position;
  for (const GroupMember& member : group.members) {
    const DumpOp* op = member.at(position);
    if (op == nullptr || !op->finished) {
      return std::nullopt;
    }
    node.ranks.push_back(member.rank);
    node.ops.push_back(op);
  }
  return node;
}

bool is_same_call(const WaitNode& node) {
  return std::ranges::all_of(node.ops,
                             [&node](const DumpOp* op) { return op->token == node.ops.front()->token; });
}

}  // namespace

std::optional<Diagnosis> judge_ended(const DumpCase& job) {
  for (const GroupCalls& group : job.view.groups) {
    if (group.members.size() < 2 || group.members.front().ops == nullptr || !is_lined_up(group)) {
      continue;
    }
    const GroupMember& first = group.members.front();
    for (std::size_t i = 0; i < first.collectives.size(); ++i) {
      const std::optional<WaitNode> node = ended_call(group, first.op(i).position);
      if (!node) {
        break;
      }
      if (!is_same_call(*node)) {
        Diagnosis diagnosis = MismatchJudge(job, *node).judge();
        diagnosis.evidence.push_back(
            "the call is over on all of them: it failed, or what it computed mixes what does not belong "
            "together");
        return diagnosis;
      }
    }
  }
  return std::nullopt;
}

std::optional<Diagnosis> judge_mismatch(const DumpCase& job) {
  for (const std::size_t index : job.roots.complete) {
    const WaitNode& node = job.waits.nodes[index];
    if (node.kind != DumpOp::Kind::collective) {
      if (std::optional<Diagnosis> diagnosis = judge_message(job, node)) {
        return diagnosis;
      }
      continue;
    }
    const MismatchJudge judge(job, node);
    if (judge.disagrees()) {
      return judge.judge();
    }
  }
  return std::nullopt;
}

}  // namespace rollcall::check
