// Ranks that wait for each other in a cycle: they used groups in different orders, posted messages in orders
// that do not match, or one left out a call and is ahead of the ranks that wait in it.

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "sim/diagnose/dump_case.h"
#include "sim/diagnose/dump_compare.h"
#include "sim/diagnose/dump_habits.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

namespace {

// A habit this much weaker than the strongest broken one is the beginning of a loop, not a departure.
constexpr std::size_t habit_ratio = 2;

using Cycle = std::vector<const WaitNode*>;

// True if all other ranks would continue if the ranks in `node` did.
bool ends_without(const Cycle& cycle, const RankSet& ranks, const WaitNode* node) {
  RankSet stuck = difference(ranks, ranks_of(*node));
  for (bool moved = true; moved && !stuck.empty();) {
    moved = false;
    for (const WaitNode* other : cycle) {
      if (stuck.contains(other->ranks.front()) && !stuck.meets(blockers_of(*other))) {
        stuck = difference(stuck, ranks_of(*other));
        moved = true;
      }
    }
  }
  return stuck.empty();
}

// Of the calls without which the cycle would not exist, returns the one that the fewest ranks hold up: those
// few are enough to cause it. On a tie, the call of the narrower group, because narrow groups are used within a
// step and wide ones at its end. Null if none stands out, as when groups are crossed, and if the cycle has many
// calls.
const WaitNode* node_held_by_fewest(const DumpCase& job, const Cycle& cycle, const RankSet& ranks) {
  constexpr std::size_t nodes_tried_max = 64;
  if (cycle.size() > nodes_tried_max) {
    return nullptr;
  }
  const auto extent = [&job](const WaitNode* node) {
    return std::make_pair(node->blockers.size(), job.view.job.groups[node->group].members.size());
  };
  const WaitNode* fewest = nullptr;
  bool is_alone = false;
  for (const WaitNode* node : cycle) {
    // If more ranks are missing than have made the call, the ranks that made it do what the others do not.
    if (node->blockers.size() > node->ranks.size() || !ends_without(cycle, ranks, node)) {
      continue;
    }
    is_alone =
        fewest == nullptr || extent(node) < extent(fewest) || (is_alone && extent(node) != extent(fewest));
    fewest = fewest == nullptr || extent(node) < extent(fewest) ? node : fewest;
  }
  return is_alone ? fewest : nullptr;
}

// A message without another end, as its two ranks.
struct Unanswered {
  Rank waiting = -1;
  Rank peer = -1;
  bool peer_is_further = false;  // it has posted a batch of that number or a later one
};

// Since torch 2.5, batches carry a number of their own; before, it stayed 0.
bool has_batch_from(const RankOps& ops, const DumpRecord& record) {
  return record.p2p_seq > 0 && std::ranges::any_of(ops.ops, [&](const DumpOp& op) {
           return op.kind == DumpOp::Kind::batch && op.group == record.group &&
                  ops.record_of(op).p2p_seq >= record.p2p_seq;
         });
}

std::vector<Unanswered> find_unanswered(const DumpCase& job, const Cycle& cycle) {
  std::vector<Unanswered> found;
  for (const WaitNode* node : cycle) {
    if (node->kind == DumpOp::Kind::collective) {
      continue;
    }
    const RankOps& ops = *job.view.ops_of(node->ranks.front());
    for (const Counterpart& other : job.messages.counterparts(ops, *node->ops.front())) {
      if (other.ops != nullptr && other.op == nullptr) {
        const bool is_batch = node->kind == DumpOp::Kind::batch;
        found.push_back({node->ranks.front(), other.rank,
                         is_batch && has_batch_from(*other.ops, ops.dump->records[other.own])});
      }
    }
  }
  return found;
}

// The rank at which most of them begin or end: one wrong peer leaves two messages unanswered. Empty on a tie.
RankSet common_end(const std::vector<Unanswered>& messages) {
  std::map<Rank, std::size_t> ends;
  for (const Unanswered& message : messages) {
    ++ends[message.waiting];
    ++ends[message.peer];
  }
  std::size_t most = 1;
  RankSet ranks;
  for (const auto& [rank, count] : ends) {
    if (count > most) {
      most = count;
      ranks = {};
    }
    if (count == most && most > 1) {
      ranks.insert(rank);
    }
  }
  return ranks.size() == 1 ? ranks : RankSet();
}

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
    if (const RankSet outsiders = without_group(); !outsiders.empty()) {
      return partial_subgroup(outsiders);
    }
    return is_about_messages() ? messages() : groups();
  }

 private:
  void find_departed() {
    std::size_t strongest = 0;
    for (const WaitNode* node : nodes_) {
      for (std::size_t i = 0; i < node->ranks.size(); ++i) {
        const RankOps& ops = *job_.view.ops_of(node->ranks[i]);
        if (const std::optional<Departure> departure = find_departure(ops, *node->ops[i])) {
          strongest = std::max(strongest, departure->context);
          departed_.push_back(*departure);
        }
      }
    }
    std::erase_if(departed_, [strongest](const Departure& departure) {
      return departure.context <= 1 || departure.context * habit_ratio <= strongest;
    });
  }

  RankSet departed_ranks() const {
    std::vector<Rank> ranks;
    for (const Departure& departure : departed_) {
      ranks.push_back(departure.ops->dump->rank);
    }
    return RankSet::of(std::move(ranks));
  }

  RankSet without_group() const {
    RankSet ranks;
    for (const WaitNode* node : nodes_) {
      ranks.insert(blockers_of(*node, Blocker::Why::no_group));
    }
    return ranks;
  }

  bool is_about_messages() const {
    if (someone_is_further()) {
      return true;
    }
    if (const RankSet silent = silent_peers(); !silent.empty() && 2 * silent.size() < ranks_.size()) {
      return true;
    }
    if (!departed_.empty()) {
      return std::ranges::any_of(departed_, [](const Departure& departure) {
        return departure.op->kind != DumpOp::Kind::collective ||
               departure.expected->kind != DumpOp::Kind::collective;
      });
    }
    return std::ranges::all_of(nodes_,
                               [](const WaitNode* node) { return node->kind != DumpOp::Kind::collective; });
  }

  bool someone_is_further() const { return std::ranges::any_of(unanswered_, &Unanswered::peer_is_further); }

  Diagnosis partial_subgroup(const RankSet& outsiders) const {
    const WaitNode* node = node_blocked_by(outsiders, Blocker::Why::no_group);
    Diagnosis diagnosis = never_used(job_, *node, outsiders);
    diagnosis.alternatives = {FindingKind::cross_group_deadlock};
    diagnosis.evidence.push_back(fmt::format(
        "{} in the cycle, too: orders of calls that do not fit look the same before the first call on the "
        "group is over",
        with_verb(outsiders, "waits", "wait")));
    diagnosis.finding.cause =
        fmt::format("{} is not in the pg_config of {}, although {} of it",
                    group_phrase(job_.view.job.groups[node->group]), ranks_phrase(outsiders),
                    is_plural(outsiders) ? "they are members" : "it is a member");
    return diagnosis;
  }

  // The most telling node: the first one that the culprits hold up for that reason.
  const WaitNode* node_blocked_by(const RankSet& culprits, Blocker::Why why) const {
    const auto node = std::ranges::find_if(
        nodes_, [&](const WaitNode* each) { return blockers_of(*each, why).meets(culprits); });
    if (node != nodes_.end()) {
      return *node;
    }
    const auto other = std::ranges::find_if(
        nodes_, [&](const WaitNode* each) { return blockers_of(*each).meets(culprits); });
    return other == nodes_.end() ? nodes_.front() : *other;
  }

  void add_departures(Diagnosis& diagnosis) const {
    for (const auto& [ops, op, expected, context] : departed_) {
      diagnosis.evidence.push_back(
          fmt::format("rank {} called {}; at this point of earlier steps it called {}", ops->dump->rank,
                      describe(*ops, *op), describe(*ops, *expected)));
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

  Diagnosis messages() const {
    Diagnosis diagnosis;
    Finding& finding = diagnosis.finding;
    finding.kind = FindingKind::p2p_mismatch;
    finding.culprits = someone_is_further() ? common_end(unanswered_) : RankSet();
    if (finding.culprits.empty()) {
      finding.culprits = departed_ranks();
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
    diagnosis.confidence = finding.tie || are_most || departed_.empty() ? Confidence::low : Confidence::high;
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
    if (diagnosis.confidence == Confidence::low) {
      diagnosis.would_settle.push_back(
          "the schedule both sides mean to follow: nothing recorded says who is right");
    }
    return diagnosis;
  }

  // Peers that continued without answering a message that another rank waits in.
  RankSet silent_peers() const {
    RankSet ranks;
    for (const WaitNode* node : nodes_) {
      ranks.insert(silent_peers_of(*node));
    }
    return ranks == ranks_ ? RankSet() : ranks;
  }

  static RankSet silent_peers_of(const WaitNode& node) {
    return node.kind == DumpOp::Kind::collective ? RankSet() : blockers_of(node, Blocker::Why::not_issued);
  }

  const WaitNode* message_node(const RankSet& culprits) const {
    const auto node = std::ranges::find_if(
        nodes_, [&](const WaitNode* each) { return silent_peers_of(*each).meets(culprits); });
    return node == nodes_.end() ? node_blocked_by(culprits, Blocker::Why::not_issued) : *node;
  }

  // A batch that went to the wrong peer is the place of the finding; if a message was left out, the wait for it is.
  void place_departure(Diagnosis& diagnosis) const {
    if (departed_.empty() || departed_.front().op->kind != DumpOp::Kind::batch) {
      return;
    }
    const Departure& first = departed_.front();
    diagnosis.finding.at->call = name_call(job_, *first.ops, *first.op);
    diagnosis.finding.at->waiting = RankSet{first.ops->dump->rank};
    set_group(job_, first.op->group, diagnosis);
    diagnosis.is_message = true;
  }

  Diagnosis groups() const {
    Diagnosis diagnosis;
    Finding& finding = diagnosis.finding;
    finding.culprits = departed_ranks();
    const bool is_order_known = !finding.culprits.empty() && finding.culprits != ranks_;
    const WaitNode* narrow = is_order_known ? nullptr : node_held_by_fewest(job_, nodes_, ranks_);
    if (narrow != nullptr) {
      finding.culprits = blockers_of(*narrow);
    } else if (!is_order_known) {
      const std::map<std::string, RankSet> all = sides();
      const auto size_of = [](const auto& side) { return side.second.size(); };
      const auto [smallest, largest] = std::ranges::minmax_element(all, {}, size_of);
      finding.tie = size_of(*smallest) == size_of(*largest);
      // Either side can give way, so on a tie the side whose kind comes first by name represents both.
      finding.culprits = all.size() > 1 ? smallest->second : ranks_;
      for (const auto& [kind, ranks] : all) {
        diagnosis.evidence.push_back(
            fmt::format("{} {} first", with_verb(ranks, "entered", "entered"), kind));
      }
    }
    const bool left_out =
        is_left_out() ||
        (narrow != nullptr && blockers_of(*narrow) == blockers_of(*narrow, Blocker::Why::not_issued));
    const bool is_alone = is_left_out() && !is_of_a_step(departed_.front());
    finding.kind = is_alone   ? FindingKind::extra_collective
                   : left_out ? FindingKind::skipped_collective
                              : FindingKind::cross_group_deadlock;
    if (left_out) {
      diagnosis.alternatives = {FindingKind::cross_group_deadlock};
    }
    diagnosis.confidence = is_order_known && !left_out ? Confidence::high : Confidence::medium;
    const WaitNode* node = node_blocked_by(finding.culprits, Blocker::Why::not_issued);
    set_place(job_, *node, blockers_of(*node), diagnosis);
    if (is_alone) {
      const Departure& first = departed_.front();
      finding.at->call = name_call(job_, *first.ops, *first.op);
      set_group(job_, first.op->group, diagnosis);
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
    return diagnosis;
  }

  std::size_t group_count() const {
    std::set<std::uint32_t> groups;
    for (const WaitNode* node : nodes_) {
      groups.insert(node->group);
    }
    return groups.size();
  }

  // The ranks by the kind of group that they entered first, by its name.
  std::map<std::string, RankSet> sides() const {
    std::map<std::string, RankSet> sides;
    for (const WaitNode* node : nodes_) {
      sides[group_phrase(job_.view.job.groups[node->group])].insert(ranks_of(*node));
    }
    return sides;
  }

  // True if only one rank broke with its habit, is already in a call of a wider group, and never made the call
  // that the others wait in.
  bool is_left_out() const {
    if (departed_.size() != 1 || nodes_.size() != 2) {
      return false;
    }
    const auto& [ops, op, expected, context] = departed_.front();
    const bool made_later =
        std::any_of(op, ops->ops.data() + ops->ops.size(),
                    [group = expected->group](const DumpOp& later) { return later.group == group; });
    return !made_later && job_.view.job.groups[op->group].members.size() >
                              job_.view.job.groups[expected->group].members.size();
  }

  // True if the rank has made the same call in earlier steps: it went ahead. Otherwise it is an extra call.
  bool is_of_a_step(const Departure& departure) const {
    const auto site_of = [&](const DumpOp& op) {
      return user_frame(job_.view.job, departure.ops->record_of(op));
    };
    const DumpFrame* site = site_of(*departure.op);
    return std::any_of(departure.ops->ops.data(), departure.op, [&](const DumpOp& op) {
      const DumpFrame* other = site_of(op);
      const bool same_site = site == nullptr || other == nullptr || *site == *other;
      return op.token == departure.op->token && op.group == departure.op->group && same_site;
    });
  }

  const DumpCase& job_;
  Cycle nodes_;
  RankSet ranks_;
  std::vector<Departure> departed_;
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
