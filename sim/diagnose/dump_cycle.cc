// Ranks that wait for each other in a cycle: they used groups in different orders, posted messages in orders
// that do not match, or one left out a call and is ahead of the ranks that wait in it.

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "sim/diagnose/dump_case.h"
#include "sim/diagnose/dump_compare.h"
#include "sim/diagnose/dump_cycle_link.h"
#include "sim/diagnose/dump_habits.h"
#include "sim/diagnose/dump_unanswered.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

namespace {

// A habit this much weaker than the strongest broken one is the beginning of a loop, not a departure.
constexpr std::size_t habit_ratio = 2;

struct Departed {
  Rank rank = -1;
  const RankOps* ops = nullptr;
  Departure departure;
};

class CycleJudge {
 public:
  CycleJudge(const DumpCase& job, const std::vector<std::vector<std::size_t>>& cycles) : job_(job) {
    for (const std::vector<std::size_t>& cycle : cycles) {
      for (const std::size_t index : cycle) {
        nodes_.push_back(&job.waits.nodes[index]);
        ranks_.insert(ranks_of(job.waits.nodes[index]));
      }
    }
    unanswered_ = find_unanswered(job, nodes_);
    find_departed();
  }

  Diagnosis judge() const {
    Diagnosis diagnosis;
    const RankSet outsiders = without_group();
    if (!outsiders.empty()) {
      partial_subgroup(outsiders, diagnosis);
    } else if (is_about_messages()) {
      messages(diagnosis);
    } else {
      groups(diagnosis);
    }
    return diagnosis;
  }

 private:
  void find_departed() {
    std::vector<Departed> found;
    std::size_t strongest = 0;
    for (const WaitNode* node : nodes_) {
      for (std::size_t i = 0; i < node->ranks.size(); ++i) {
        const RankOps& ops = *job_.view.ops_of(node->ranks[i]);
        const auto index = static_cast<std::size_t>(node->ops[i] - ops.ops.data());
        if (const std::optional<Departure> departure = find_departure(ops, index)) {
          strongest = std::max(strongest, departure->context);
          found.push_back({node->ranks[i], &ops, *departure});
        }
      }
    }
    for (const Departed& departed : found) {
      if (departed.departure.context > 1 && departed.departure.context * habit_ratio > strongest) {
        departed_.push_back(departed);
      }
    }
  }

  RankSet departed_ranks() const {
    std::vector<Rank> ranks;
    for (const Departed& departed : departed_) {
      ranks.push_back(departed.rank);
    }
    return RankSet::of(std::move(ranks));
  }

  RankSet blockers_because(Blocker::Why why) const {
    RankSet ranks;
    for (const WaitNode* node : nodes_) {
      for (const Blocker& blocker : node->blockers) {
        if (blocker.why == why) {
          ranks.insert(blocker.rank);
        }
      }
    }
    return ranks;
  }

  RankSet without_group() const { return blockers_because(Blocker::Why::no_group); }

  bool is_about_messages() const {
    if (someone_is_further(unanswered_)) {
      return true;
    }
    if (const RankSet silent = silent_peers(); !silent.empty() && 2 * silent.size() < ranks_.size()) {
      return true;
    }
    if (!departed_.empty()) {
      return std::any_of(departed_.begin(), departed_.end(), [](const Departed& departed) {
        return departed.ops->ops[departed.departure.op].kind != DumpOp::Kind::collective ||
               departed.ops->ops[departed.departure.expected].kind != DumpOp::Kind::collective;
      });
    }
    return std::all_of(nodes_.begin(), nodes_.end(),
                       [](const WaitNode* node) { return node->kind != DumpOp::Kind::collective; });
  }

  void partial_subgroup(const RankSet& outsiders, Diagnosis& diagnosis) const {
    const WaitNode* node = node_blocked_by(outsiders, Blocker::Why::no_group);
    diagnosis.finding.kind = FindingKind::partial_subgroup;
    diagnosis.confidence = Diagnosis::Confidence::low;
    diagnosis.alternatives = {FindingKind::cross_group_deadlock};
    diagnosis.evidence.push_back(fmt::format(
        "{} in the cycle, too: orders of calls that do not fit look the same before the first call on the "
        "group is over",
        with_verb(outsiders, "waits", "wait")));
    diagnosis.finding.culprits = outsiders;
    set_place(job_, *node, outsiders, diagnosis);
    const std::string group = group_phrase(job_.view.job.groups[node->group]);
    diagnosis.finding.headline =
        fmt::format("{} never used {}, which the other members wait in", ranks_phrase(outsiders), group);
    diagnosis.finding.cause =
        fmt::format("{} is not in the pg_config of {}, although {} of it", group, ranks_phrase(outsiders),
                    is_plural(outsiders) ? "they are members" : "it is a member");
    diagnosis.finding.advice = "call new_group and the group's collectives on every member, in one order";
  }

  // The most telling node: the first one that the culprits hold up for that reason.
  const WaitNode* node_blocked_by(const RankSet& culprits, Blocker::Why why) const {
    const WaitNode* fallback = nullptr;
    for (const WaitNode* node : nodes_) {
      for (const Blocker& blocker : node->blockers) {
        if (culprits.contains(blocker.rank)) {
          if (blocker.why == why) {
            return node;
          }
          fallback = fallback == nullptr ? node : fallback;
        }
      }
    }
    return fallback == nullptr ? nodes_.front() : fallback;
  }

  void add_departures(Diagnosis& diagnosis) const {
    for (const Departed& departed : departed_) {
      const DumpOp& did = departed.ops->ops[departed.departure.op];
      const DumpOp& expected = departed.ops->ops[departed.departure.expected];
      diagnosis.evidence.push_back(
          fmt::format("rank {} called {}; at this point of earlier steps it called {}", departed.rank,
                      describe(*departed.ops, did), describe(*departed.ops, expected)));
    }
  }

  // "all_reduce on mesh_dp", "batch of send 1->3, recv 1<-0".
  std::string describe(const RankOps& ops, const DumpOp& op) const {
    if (op.kind == DumpOp::Kind::collective) {
      const Call call = name_call(job_, ops, op);
      return fmt::format("{} on {}{}", call.op, call.group, origin_of(call));
    }
    std::vector<std::string> messages;
    for (const std::uint32_t record : ops.parts_of(op)) {
      const Call call = name_message(job_, ops, record);
      if (call.peer >= 0) {
        messages.push_back(
            fmt::format("{} {} rank {}", call.op, call.op == "send" ? "to" : "from", call.peer));
      }
    }
    return fmt::format("{}", fmt::join(messages, " and "));
  }

  void messages(Diagnosis& diagnosis) const {
    Finding& finding = diagnosis.finding;
    diagnosis.finding.kind = FindingKind::p2p_mismatch;
    const bool one_is_further = someone_is_further(unanswered_);
    finding.culprits = one_is_further ? common_end(unanswered_) : departed_ranks();
    if (finding.culprits.empty()) {
      finding.culprits = one_is_further ? departed_ranks() : RankSet();
    }
    if (finding.culprits.empty()) {
      finding.culprits = silent_peers();
    }
    finding.tie = finding.culprits.empty();
    if (finding.tie) {
      finding.culprits = ranks_;
    }
    // In rings that hold little of the past, victims look as if they had broken with their habits.
    const bool are_most = 2 * finding.culprits.size() > ranks_.size();
    diagnosis.confidence = finding.tie || are_most || departed_.empty() ? Diagnosis::Confidence::low
                                                                        : Diagnosis::Confidence::high;
    const WaitNode* node = message_node(finding.culprits);
    set_place(job_, *node, blockers_of(*node), diagnosis);
    place_departure(diagnosis);
    finding.headline =
        fmt::format("the sends and receives of {} do not match those of {} peers",
                    ranks_phrase(finding.culprits), is_plural(finding.culprits) ? "their" : "its");
    finding.cause = departed_.empty()
                        ? "ranks wait for each other's messages in a cycle"
                        : "one message was left out, or went to another rank than its receiver expects";
    finding.advice = "post one recv for every send, between the same two ranks and in the same order";
    add_departures(diagnosis);
    if (diagnosis.confidence == Diagnosis::Confidence::low) {
      diagnosis.would_settle.push_back(
          "the schedule both sides mean to follow: nothing recorded says who is right");
    }
  }

  // Peers that continued without answering a message that another rank waits in.
  RankSet silent_peers() const {
    RankSet ranks;
    for (const WaitNode* node : nodes_) {
      for (const Blocker& blocker : node->blockers) {
        if (node->kind != DumpOp::Kind::collective && blocker.why == Blocker::Why::not_issued) {
          ranks.insert(blocker.rank);
        }
      }
    }
    return ranks == ranks_ ? RankSet() : ranks;
  }

  const WaitNode* message_node(const RankSet& culprits) const {
    for (const WaitNode* node : nodes_) {
      if (node->kind == DumpOp::Kind::collective) {
        continue;
      }
      for (const Blocker& blocker : node->blockers) {
        if (culprits.contains(blocker.rank) && blocker.why == Blocker::Why::not_issued) {
          return node;
        }
      }
    }
    return node_blocked_by(culprits, Blocker::Why::not_issued);
  }

  // A batch that went to the wrong peer is the place of the finding; if a message was left out, the wait for it is.
  void place_departure(Diagnosis& diagnosis) const {
    if (departed_.empty() ||
        departed_.front().ops->ops[departed_.front().departure.op].kind != DumpOp::Kind::batch) {
      return;
    }
    const Departed& first = departed_.front();
    const DumpOp& did = first.ops->ops[first.departure.op];
    diagnosis.finding.at->call = name_call(job_, *first.ops, did);
    diagnosis.finding.at->waiting = RankSet{first.rank};
    set_group(job_, did.group, diagnosis);
    diagnosis.is_message = true;
  }

  void groups(Diagnosis& diagnosis) const {
    Finding& finding = diagnosis.finding;
    finding.culprits = departed_ranks();
    const bool is_order_known = !finding.culprits.empty() && finding.culprits != ranks_;
    const WaitNode* narrow = is_order_known ? nullptr : node_held_by_fewest(job_, nodes_);
    if (narrow != nullptr) {
      finding.culprits = blockers_of(*narrow);
    } else if (!is_order_known) {
      finding.culprits = smaller_side();
      finding.tie = sides_are_equal();
      finding.culprits = finding.culprits.empty() ? ranks_ : finding.culprits;
      for (const auto& [kind, ranks] : sides()) {
        diagnosis.evidence.push_back(
            fmt::format("{} {} first", with_verb(ranks, "entered", "entered"), kind));
      }
    }
    const bool left_out =
        is_left_out() || (narrow != nullptr && is_held_by(*narrow, Blocker::Why::not_issued));
    const bool is_alone = is_left_out() && !is_of_a_step(departed_.front());
    finding.kind = is_alone   ? FindingKind::extra_collective
                   : left_out ? FindingKind::skipped_collective
                              : FindingKind::cross_group_deadlock;
    if (left_out) {
      diagnosis.alternatives = {FindingKind::cross_group_deadlock};
    }
    diagnosis.confidence =
        is_order_known && !left_out ? Diagnosis::Confidence::high : Diagnosis::Confidence::medium;
    const WaitNode* node = node_blocked_by(finding.culprits, Blocker::Why::not_issued);
    set_place(job_, *node, blockers_of(*node), diagnosis);
    if (is_alone) {
      const Departed& first = departed_.front();
      const DumpOp& did = first.ops->ops[first.departure.op];
      finding.at->call = name_call(job_, *first.ops, did);
      set_group(job_, did.group, diagnosis);
      finding.headline =
          fmt::format("{} alone made {}", ranks_phrase(finding.culprits), call_phrase(finding.at->call));
      finding.cause = "it waits there for ranks that wait for it in a call of every step";
      finding.advice =
          "make the call on all ranks or on none; an async call that no rank waits for counts too";
    } else if (left_out) {
      finding.headline = fmt::format("{} went past {} without making it", ranks_phrase(finding.culprits),
                                     call_phrase(finding.at->call));
      finding.cause = "it waits in its next call for ranks that wait in this one for it";
      finding.advice = "look for a branch around that call that depends on the rank or on local data";
    } else {
      finding.headline = fmt::format(
          "{} {} groups in a different order than the others; all wait for each other in a cycle",
          with_verb(finding.culprits, "uses", "use"), is_plural(finding.culprits) ? "their" : "its");
      finding.cause =
          fmt::format("{} in {} groups wait for each other, each behind a call the other has not reached",
                      ranks_phrase(ranks_), group_count());
      finding.advice = groups_in_one_order;
    }
    add_departures(diagnosis);
    if (!is_order_known && narrow == nullptr) {
      diagnosis.would_settle.push_back(
          "which order the program means: both are equally frequent in the dumps");
    }
  }

  static bool is_held_by(const WaitNode& node, Blocker::Why why) {
    return std::all_of(node.blockers.begin(), node.blockers.end(),
                       [why](const Blocker& blocker) { return blocker.why == why; });
  }

  std::size_t group_count() const {
    std::vector<std::uint32_t> groups;
    for (const WaitNode* node : nodes_) {
      groups.push_back(node->group);
    }
    std::sort(groups.begin(), groups.end());
    return static_cast<std::size_t>(std::unique(groups.begin(), groups.end()) - groups.begin());
  }

  // The ranks by the kind of group that they entered first, by its name.
  std::map<std::string, RankSet> sides() const {
    std::map<std::string, RankSet> sides;
    for (const WaitNode* node : nodes_) {
      sides[group_phrase(job_.view.job.groups[node->group])].insert(ranks_of(*node));
    }
    return sides;
  }

  // Of the ranks that entered one kind of group first and those that entered another, the smaller set. Either side can
  // give way, so on a tie the side whose kind comes first by name represents both.
  RankSet smaller_side() const {
    const std::map<std::string, RankSet> all = sides();
    const auto smallest = std::min_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a.second.size() < b.second.size();
    });
    return all.size() > 1 ? smallest->second : RankSet();
  }

  bool sides_are_equal() const {
    const std::map<std::string, RankSet> all = sides();
    return std::all_of(all.begin(), all.end(),
                       [&all](const auto& side) { return side.second.size() == all.begin()->second.size(); });
  }

  // True if only one rank broke with its habit, is already in a call of a wider group, and never made the call
  // that the others wait in.
  bool is_left_out() const {
    if (departed_.size() != 1 || nodes_.size() != 2) {
      return false;
    }
    const Departed& departed = departed_.front();
    const DumpOp& did = departed.ops->ops[departed.departure.op];
    const DumpOp& expected = departed.ops->ops[departed.departure.expected];
    const bool made_later =
        std::any_of(departed.ops->ops.begin() + static_cast<std::ptrdiff_t>(departed.departure.op),
                    departed.ops->ops.end(), [&](const DumpOp& op) { return op.group == expected.group; });
    return !made_later && job_.view.job.groups[did.group].members.size() >
                              job_.view.job.groups[expected.group].members.size();
  }

  // True if the rank has made the same call in earlier steps: it went ahead. Otherwise it is an extra call.
  bool is_of_a_step(const Departed& departed) const {
    const std::vector<DumpOp>& ops = departed.ops->ops;
    const DumpOp& did = ops[departed.departure.op];
    const DumpFrame* site = user_frame(job_.view.job, departed.ops->record_of(did));
    return std::any_of(ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(departed.departure.op),
                       [&](const DumpOp& op) {
                         const DumpFrame* other = user_frame(job_.view.job, departed.ops->record_of(op));
                         const bool same_site = site == nullptr || other == nullptr || *site == *other;
                         return op.token == did.token && op.group == did.group && same_site;
                       });
  }

  const DumpCase& job_;
  std::vector<const WaitNode*> nodes_;
  RankSet ranks_;
  std::vector<Departed> departed_;
  std::vector<Unanswered> unanswered_;
};

// True if the call that holds up a rank has left the rank's ring: its host is ahead of its GPU by more calls than the
// ring has room for.
bool is_beyond_ring(const RankOps& ops, const WaitNode& node) {
  const RankDump& dump = *ops.dump;
  const auto counts = std::ranges::find(dump.status, node.group, &DumpStatus::group);
  return !dump.from_start && node.kind == DumpOp::Kind::collective && counts != dump.status.end() &&
         counts->completed >= 0 && counts->completed + 1 < node.position;
}

// The cycles whose ranks stand still where the cycle says, as far as is known.
std::vector<std::vector<std::size_t>> still_cycles(const DumpCase& job) {
  const RankSet moved = ranks_with_calls_between(job.view.job);
  std::vector<std::vector<std::size_t>> cycles = job.roots.cycles;
  std::erase_if(cycles, [&](const std::vector<std::size_t>& cycle) {
    return std::ranges::any_of(cycle, [&](std::size_t index) {
      const WaitNode& node = job.waits.nodes[index];
      return std::ranges::any_of(node.ranks, [&](Rank rank) {
        return moved.contains(rank) || is_beyond_ring(*job.view.ops_of(rank), node);
      });
    });
  });
  return cycles;
}

}  // namespace

std::optional<Diagnosis> judge_cycle(const DumpCase& job) {
  const std::vector<std::vector<std::size_t>> cycles = still_cycles(job);
  if (cycles.empty()) {
    return std::nullopt;
  }
  return CycleJudge(job, cycles).judge();
}

}  // namespace rollcall::check
