#include "sim/check/wait_graph.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>

#include "sim/check/naming.h"

namespace rollcall::check {
namespace {

// A slot, or (with the rank) one rank's message: messages of two ranks may have equal numbers. Or keys of the
// store.
using NodeKey = std::tuple<GroupId, Channel, std::int64_t, Rank, std::vector<std::string>>;
using NodeIndex = std::map<NodeKey, std::size_t>;

NodeKey key_of(const Evidence& evidence, const RankStatus& status) {
  if (status.channel == Channel::store) {
    return {0, Channel::store, 0, -1, evidence.store_waits[static_cast<std::size_t>(status.seq)].keys};
  }
  return {status.group, status.channel, status.seq, status.in_message() ? status.group_rank : Rank{-1}, {}};
}

bool is_waiting(const RankStatus& status) { return status.state == RankStatus::State::waiting; }

void link(const Evidence& evidence, const NodeIndex& index, BlockedSlot& slot) {
  for (const Rank rank : slot.missing) {
    const RankStatus& status = evidence.ranks[static_cast<std::size_t>(rank)];
    if (is_waiting(status)) {
      slot.next.push_back(index.at(key_of(evidence, status)));
    }
  }
  std::sort(slot.next.begin(), slot.next.end());
  slot.next.erase(std::unique(slot.next.begin(), slot.next.end()), slot.next.end());
}

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

// The slots of the first cycle, as indexes; empty when there is none. A slot is on a cycle when its
// strong component has more than one slot, or it waits for itself.
std::vector<std::size_t> first_cycle(const std::vector<BlockedSlot>& slots) {
  Graph graph(slots.size());
  for (std::size_t from = 0; from < slots.size(); ++from) {
    for (const std::size_t to : slots[from].next) {
      boost::add_edge(from, to, graph);
    }
  }
  std::vector<std::size_t> component(slots.size());
  const auto components = boost::strong_components(
      graph, boost::make_iterator_property_map(component.begin(), boost::get(boost::vertex_index, graph)));
  std::vector<std::vector<std::size_t>> members(static_cast<std::size_t>(components));
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    members[component[slot]].push_back(slot);
  }
  std::vector<std::size_t> best;
  for (const auto& cycle : members) {
    const bool closed =
        cycle.size() > 1 || (cycle.size() == 1 && std::ranges::count(slots[cycle[0]].next, cycle[0]) > 0);
    if (closed && (best.empty() || cycle.front() < best.front())) {
      best = cycle;
    }
  }
  return best;
}

}  // namespace

std::vector<BlockedSlot> blocked_slots(const Evidence& evidence) {
  NodeIndex index;
  for (const RankStatus& status : evidence.ranks) {
    if (is_waiting(status)) {
      index.try_emplace(key_of(evidence, status), 0);
    }
  }
  std::vector<BlockedSlot> slots(index.size());
  std::size_t next = 0;
  for (auto& [key, position] : index) {
    position = next++;
  }
  for (std::size_t rank = 0; rank < evidence.ranks.size(); ++rank) {
    const RankStatus& status = evidence.ranks[rank];
    if (!is_waiting(status)) {
      continue;
    }
    BlockedSlot& blocked = slots[index.at(key_of(evidence, status))];
    if (blocked.waiting.empty()) {
      blocked.group = status.group;
      blocked.channel = status.channel;
      blocked.seq = status.seq;
      blocked.kind = waiting_op(evidence, status).kind;
      blocked.missing = awaited(evidence, status);
    }
    blocked.waiting.push_back(static_cast<Rank>(rank));
  }
  for (BlockedSlot& blocked : slots) {
    link(evidence, index, blocked);
  }
  return slots;
}

Blame find_blame(const Evidence& evidence, const std::vector<BlockedSlot>& slots) {
  Blame blame;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    bool guilty = false;
    for (const Rank rank : slots[i].missing) {
      if (!is_waiting(evidence.ranks[static_cast<std::size_t>(rank)])) {
        blame.culprits.push_back(rank);
        guilty = true;
      }
    }
    if (guilty) {
      blame.slots.push_back(i);
    }
  }
  if (blame.culprits.empty()) {
    blame.slots = first_cycle(slots);
    blame.cycle = !blame.slots.empty();
    for (const std::size_t i : blame.slots) {
      blame.culprits.insert(blame.culprits.end(), slots[i].waiting.begin(), slots[i].waiting.end());
    }
  }
  std::sort(blame.culprits.begin(), blame.culprits.end());
  blame.culprits.erase(std::unique(blame.culprits.begin(), blame.culprits.end()), blame.culprits.end());
  return blame;
}

}  // namespace rollcall::check
