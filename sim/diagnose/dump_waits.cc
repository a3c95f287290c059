#include "sim/diagnose/dump_waits.h"

#include <algorithm>
#include <limits>
#include <set>

namespace rollcall::check {

DumpView::DumpView(const JobDump& dumps) : job(dumps), tokens(agreement_tokens(dumps)) {
  ranks.reserve(job.ranks.size());
  for (const RankDump& dump : job.ranks) {
    ranks.push_back(operations_of(job, dump, tokens));
  }
  groups = line_up(job, ranks);
}

const RankOps* DumpView::ops_of(Rank rank) const { return find_rank(ranks, rank, &RankOps::rank); }

Rank DumpView::member_of(std::uint32_t group, Rank group_rank) const {
  const std::vector<Rank>& members = job.groups[group].members;
  return group_rank >= 0 && static_cast<std::size_t>(group_rank) < members.size()
             ? members[static_cast<std::size_t>(group_rank)]
             : -1;
}

Messages::Messages(const DumpView& view) : view_(view) {
  for (const RankOps& ops : view.ranks) {
    for (std::uint32_t i = 0; i < ops.ops.size(); ++i) {
      const DumpOp& op = ops.ops[i];
      if (op.kind == DumpOp::Kind::collective) {
        continue;
      }
      for (const std::uint32_t record : ops.parts_of(op)) {
        const DumpCall& call = view.job.calls[ops.dump->records[record].call];
        if (!call.is_message()) {
          continue;
        }
        Side& side = sides_[{ops.dump->rank, call.op == "send", {op.group, call.source, call.destination}}];
        side.finished += op.finished && side.finished == side.items.size() ? 1 : 0;
        side.items.push_back({i, record});
        Traffic& traffic = traffic_[{ops.dump->rank, op.group}];
        ++traffic.count;
        traffic.is_numbered =
            traffic.is_numbered && op.kind == DumpOp::Kind::message && ops.dump->records[record].p2p_seq > 0;
      }
    }
  }
}

const Messages::Side* Messages::side(const RankOps& ops, const Lane& lane, bool sends) const {
  const auto place = sides_.find({ops.dump->rank, sends, lane});
  return place == sides_.end() ? nullptr : &place->second;
}

bool Messages::counts_only(const Side& side, const RankOps& ops, std::uint32_t group) const {
  const Traffic& traffic = traffic_.at({ops.dump->rank, group});
  return traffic.is_numbered && traffic.count == side.items.size();
}

const Messages::Item* Messages::with_number(const Side& side, const RankOps& ops, std::int64_t number) {
  const auto place = std::ranges::find_if(
      side.items, [&](const Item& item) { return ops.dump->records[item.record].p2p_seq == number; });
  return place == side.items.end() ? nullptr : &*place;
}

Counterpart Messages::counterpart(const RankOps& ops, std::uint32_t record) const {
  const DumpRecord& own = ops.dump->records[record];
  const DumpCall& call = view_.job.calls[own.call];
  const bool sends = call.op == "send";
  Counterpart other;
  other.own = record;
  other.rank = view_.member_of(own.group, sends ? call.destination : call.source);
  other.ops = view_.ops_of(other.rank);
  if (other.ops == nullptr) {
    return other;
  }
  const Lane lane{own.group, call.source, call.destination};
  const Side* here = side(ops, lane, sends);
  const Side* there = side(*other.ops, lane, !sends);
  if (here == nullptr || there == nullptr) {
    return other;
  }
  const bool begins_in_the_middle = !ops.dump->from_start || !other.ops->dump->from_start;
  if (begins_in_the_middle && counts_only(*here, ops, own.group) &&
      counts_only(*there, *other.ops, own.group)) {
    // Each side numbers its messages of the group, and all are of this lane: equal numbers mean the same message.
    if (const Item* item = with_number(*there, *other.ops, own.p2p_seq)) {
      other.op = &other.ops->ops[item->op];
      other.record = item->record;
    }
    return other;
  }
  const auto place = std::ranges::find(here->items, record, &Item::record);
  auto index = static_cast<std::int64_t>(place - here->items.begin());
  if (begins_in_the_middle) {
    // For rings that begin in the middle: messages that are finished on one side are finished on the other.
    index += static_cast<std::int64_t>(there->finished) - static_cast<std::int64_t>(here->finished);
  }
  if (index >= 0 && static_cast<std::size_t>(index) < there->items.size()) {
    const Item& item = there->items[static_cast<std::size_t>(index)];
    other.op = &other.ops->ops[item.op];
    other.record = item.record;
  }
  return other;
}

std::vector<Counterpart> Messages::counterparts(const RankOps& ops, const DumpOp& op) const {
  std::vector<Counterpart> others;
  for (const std::uint32_t record : ops.parts_of(op)) {
    if (view_.job.calls[ops.dump->records[record].call].is_message()) {
      others.push_back(counterpart(ops, record));
    }
  }
  return others;
}

namespace {

class WaitFinder {
 public:
  WaitFinder(const DumpView& view, const Messages& messages) : view_(view), messages_(messages) {}

  Waits find() {
    for (const RankOps& ops : view_.ranks) {
      if (const DumpOp* head = head_of(ops)) {
        heads_[ops.dump->rank] = head;
        enter(ops, *head);
      }
    }
    for (WaitNode& node : waits_.nodes) {
      find_blockers(node);
    }
    while (hold_batches_together()) {
    }
    return std::move(waits_);
  }

 private:
  // The rank's first call that no rank knows to be finished.
  const DumpOp* head_of(const RankOps& ops) {
    for (const DumpOp& op : ops.ops) {
      if (op.finished) {
        continue;
      }
      if (!is_finished_elsewhere(ops, op)) {
        return &op;
      }
      waits_.unobserved[ops.dump->rank].push_back(&op);
    }
    return nullptr;
  }

  bool is_finished_elsewhere(const RankOps& ops, const DumpOp& op) {
    return op.kind == DumpOp::Kind::collective ? collective_is_done(ops, op) : messages_are_done(ops, op);
  }

  // A collective that some member has finished is over for all, if all have made the same call. One with a root is not:
  // the root may be done with it while others still wait, and a rank that names another root waits forever. Neither is
  // an all-to-all of sizes that may not fit: a rank is done once its own parts are exchanged.
  bool collective_is_done(const RankOps& ops, const DumpOp& op) {
    const auto [place, is_new] = done_.emplace(std::make_pair(op.group, op.position), false);
    const std::string& name = view_.job.calls[ops.record_of(op).call].op;
    if (is_new && !has_root(name)) {
      bool some_finished = false;
      bool all_came = true;
      for (const GroupMember& member : view_.calls_of(op.group).members) {
        const DumpOp* other = member.at(op.position);
        some_finished |= other != nullptr ? other->proven : member.finished >= op.position;
        all_came &= other == nullptr ? member.ops == nullptr || member.issued >= op.position
                                     : other->token == op.token;
      }
      place->second = some_finished && all_came &&
                      (!shapes_may_differ(name) || shapes_are_equal(op) || later_call_is_done(op));
    }
    return place->second;
  }

  // True if all recorded calls of this number pass equally large inputs and outputs.
  bool shapes_are_equal(const DumpOp& op) const {
    const DumpCall* first = nullptr;
    return std::ranges::all_of(view_.calls_of(op.group).members, [&](const GroupMember& member) {
      const DumpOp* other = member.at(op.position);
      if (other == nullptr) {
        return true;
      }
      const DumpCall& call = view_.job.calls[member.ops->record_of(*other).call];
      first = first == nullptr ? &call : first;
      return call.inputs == first->inputs && call.outputs == first->inputs;
    });
  }

  // True if a member has finished a later call of the group, which all members have to make. Some dumps hold only calls
  // that are not finished.
  bool later_call_is_done(const DumpOp& op) const {
    return std::ranges::any_of(view_.calls_of(op.group).members, [&](const GroupMember& member) {
      const bool is_unrecorded = member.finished > op.position && member.at(member.finished) == nullptr;
      return is_unrecorded || has_finished_after(view_.job, member, op.position);
    });
  }

  bool messages_are_done(const RankOps& ops, const DumpOp& op) const {
    const std::vector<Counterpart> others = messages_.counterparts(ops, op);
    return !others.empty() && std::ranges::all_of(others, [](const Counterpart& other) {
      return other.op != nullptr && other.op->finished;
    });
  }

  void enter(const RankOps& ops, const DumpOp& head) {
    const Rank rank = ops.dump->rank;
    std::size_t index = waits_.nodes.size();
    if (head.kind == DumpOp::Kind::collective) {
      index = slots_.emplace(std::make_pair(head.group, head.position), index).first->second;
    }
    if (index == waits_.nodes.size()) {
      WaitNode node;
      node.kind = head.kind;
      node.group = head.group;
      node.position = head.position;
      waits_.nodes.push_back(std::move(node));
    }
    waits_.nodes[index].ranks.push_back(rank);
    waits_.nodes[index].ops.push_back(&head);
    waits_.node_of[rank] = index;
  }

  void find_blockers(WaitNode& node) const {
    if (node.kind == DumpOp::Kind::collective) {
      for (const GroupMember& member : view_.calls_of(node.group).members) {
        add_member(node, member);
      }
    } else {
      add_peers(node);
    }
    std::ranges::sort(node.blockers, {}, &Blocker::rank);
    const auto repeated = std::ranges::unique(node.blockers, {}, &Blocker::rank);
    node.blockers.erase(repeated.begin(), repeated.end());
  }

  void add_member(WaitNode& node, const GroupMember& member) const {
    if (member.ops == nullptr) {
      node.blockers.push_back({member.rank, Blocker::Why::no_dump});
      return;
    }
    if (member.issued < node.position) {
      node.blockers.push_back({member.rank, member.is_older    ? Blocker::Why::older
                                            : member.has_group ? Blocker::Why::not_issued
                                                               : Blocker::Why::no_group});
      return;
    }
    const DumpOp* op = member.at(node.position);
    const bool is_over = op == nullptr ? member.finished >= node.position : op->finished;
    if (!is_over && head(member.rank) != op) {
      node.blockers.push_back({member.rank, Blocker::Why::held_up});
    }
  }

  void add_peers(WaitNode& node) const {
    const RankOps& ops = *view_.ops_of(node.ranks.front());
    for (const Counterpart& other : messages_.counterparts(ops, *node.ops.front())) {
      if (other.rank < 0 || other.rank == ops.dump->rank) {
        continue;
      }
      if (other.ops == nullptr) {
        node.blockers.push_back({other.rank, Blocker::Why::no_dump});
      } else if (other.op == nullptr) {
        node.blockers.push_back({other.rank, Blocker::Why::not_issued});
      } else if (!other.op->finished && head(other.rank) != other.op) {
        node.blockers.push_back({other.rank, Blocker::Why::held_up});
      }
    }
  }

  // The messages of a batch are one kernel: a batch that has found all its other ends and still is not finished
  // waits for whatever holds up a batch with which it shares a message. Only nodes without another reason take
  // this one, so repeating this terminates. True if a blocker was added.
  bool hold_batches_together() {
    std::vector<std::pair<std::size_t, Blocker>> found;
    for (std::size_t i = 0; i < waits_.nodes.size(); ++i) {
      const WaitNode& node = waits_.nodes[i];
      if (node.kind == DumpOp::Kind::collective || !node.blockers.empty()) {
        continue;
      }
      for (const Rank peer : peers_at_head(node)) {
        const WaitNode& theirs = waits_.nodes[waits_.node_of.at(peer)];
        if (theirs.kind == DumpOp::Kind::batch && !theirs.blockers.empty()) {
          found.emplace_back(i, Blocker{peer, Blocker::Why::held_up});
        }
      }
    }
    for (const auto& [node, blocker] : found) {
      waits_.nodes[node].blockers.push_back(blocker);
    }
    return !found.empty();
  }

  // The ranks that are held up in the other ends of a node's messages, ascending.
  std::set<Rank> peers_at_head(const WaitNode& node) const {
    std::set<Rank> peers;
    const RankOps& ops = *view_.ops_of(node.ranks.front());
    for (const Counterpart& other : messages_.counterparts(ops, *node.ops.front())) {
      if (other.op != nullptr && other.rank != ops.dump->rank && head(other.rank) == other.op) {
        peers.insert(other.rank);
      }
    }
    return peers;
  }

  const DumpOp* head(Rank rank) const {
    const auto place = heads_.find(rank);
    return place == heads_.end() ? nullptr : place->second;
  }

  const DumpView& view_;
  const Messages& messages_;
  Waits waits_;
  std::map<Rank, const DumpOp*> heads_;
  std::map<std::pair<std::uint32_t, std::int64_t>, std::size_t> slots_;
  std::map<std::pair<std::uint32_t, std::int64_t>, bool> done_;
};

// Tarjan's strongly connected components over nodes, without recursion: chains can be as long as the job
// has ranks.
class Components {
 public:
  explicit Components(std::vector<std::vector<std::size_t>> next)
      : next_(std::move(next)), order_(next_.size(), 0), low_(next_.size(), 0), of_(next_.size(), none) {
    for (std::size_t node = 0; node < next_.size(); ++node) {
      if (order_[node] == 0) {
        explore(node);
      }
    }
  }

  std::size_t count() const { return count_; }
  std::size_t of(std::size_t node) const { return of_[node]; }

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  void explore(std::size_t root) {
    std::vector<std::pair<std::size_t, std::size_t>> path = {{root, 0}};  // node, next edge to follow
    discover(root);
    while (!path.empty()) {
      auto& [node, edge] = path.back();
      if (edge < next_[node].size()) {
        const std::size_t target = next_[node][edge++];
        if (order_[target] == 0) {
          discover(target);
          path.emplace_back(target, 0);
        } else if (of_[target] == none) {
          low_[node] = std::min(low_[node], order_[target]);
        }
        continue;
      }
      const std::size_t done = node;
      path.pop_back();
      if (!path.empty()) {
        low_[path.back().first] = std::min(low_[path.back().first], low_[done]);
      }
      close(done);
    }
  }

  void discover(std::size_t node) {
    order_[node] = low_[node] = ++time_;
    open_.push_back(node);
  }

  void close(std::size_t node) {
    if (low_[node] != order_[node]) {
      return;
    }
    std::size_t member = none;
    while (member != node) {
      member = open_.back();
      open_.pop_back();
      of_[member] = count_;
    }
    ++count_;
  }

  std::vector<std::vector<std::size_t>> next_;
  std::vector<std::size_t> order_;  // of discovery, from 1; 0: not yet
  std::vector<std::size_t> low_;
  std::vector<std::size_t> of_;
  std::vector<std::size_t> open_;
  std::size_t time_ = 0;
  std::size_t count_ = 0;
};

}  // namespace

bool moved_between_dumps(const DumpView& view) {
  return std::ranges::any_of(view.groups, [](const GroupCalls& group) {
    return std::ranges::any_of(group.members, &GroupMember::is_older);
  });
}

Waits find_waits(const DumpView& view, const Messages& messages) { return WaitFinder(view, messages).find(); }

Roots find_roots(const Waits& waits) {
  Roots roots;
  std::vector<std::vector<std::size_t>> next(waits.nodes.size());
  std::vector<bool> is_held(waits.nodes.size(), false);  // by a rank that is not held up in a node itself
  for (std::size_t i = 0; i < waits.nodes.size(); ++i) {
    for (const Blocker& blocker : waits.nodes[i].blockers) {
      const auto place = waits.node_of.find(blocker.rank);
      if (blocker.why == Blocker::Why::no_dump) {
        roots.lost.insert(blocker.rank);
      } else if (place != waits.node_of.end()) {
        next[i].push_back(place->second);
      } else {
        is_held[i] = true;
        if (blocker.why != Blocker::Why::older) {  // a dump that is too old does not tell
          roots.idle.emplace(blocker.rank, i);
        }
      }
    }
  }
  const Components components(next);
  std::vector<std::vector<std::size_t>> members(components.count());
  std::vector<bool> leads_on(components.count(), false);
  for (std::size_t i = 0; i < waits.nodes.size(); ++i) {
    const std::size_t component = components.of(i);
    const bool leads_out =
        std::ranges::any_of(next[i], [&](std::size_t target) { return components.of(target) != component; });
    members[component].push_back(i);
    leads_on[component] = leads_on[component] || leads_out || is_held[i];
  }
  for (std::size_t component = 0; component < members.size(); ++component) {
    if (leads_on[component]) {
      continue;
    }
    const std::vector<std::size_t>& nodes = members[component];
    const std::vector<std::size_t>& after = next[nodes.front()];
    const bool waits_for_itself = nodes.size() > 1 || std::ranges::find(after, nodes.front()) != after.end();
    waits_for_itself ? roots.cycles.push_back(nodes) : roots.complete.push_back(nodes.front());
  }
  std::ranges::sort(roots.complete);
  std::ranges::sort(roots.cycles);
  return roots;
}

}  // namespace rollcall::check
