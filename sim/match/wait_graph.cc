#include "sim/match/wait_graph.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "sim/match/naming.h"
#include "sim/match/strong_components.h"

namespace rollcall::check {
namespace {

// A slot, or (with the rank) one rank's message: messages of two ranks may have equal numbers. Or keys of the
// store.
using NodeKey = std::tuple<GroupId, Channel, std::int64_t, Rank, std::vector<std::string>>;
using NodeIndex = std::map<NodeKey, std::size_t>;

template <typename T>
void make_set(std::vector<T>& values) {
  std::ranges::sort(values);
  values.erase(std::ranges::unique(values).begin(), values.end());
}

// Ranks that receive from anyone wait for the same event: a send of any of the others.
constexpr Rank anyone = -2;

bool takes_from_anyone(const Evidence& evidence, const RankStatus& status) {
  return status.in_message() && waiting_op(evidence, status).root < 0;
}

NodeKey key_of(const Evidence& evidence, const RankStatus& status) {
  if (status.channel == Channel::store) {
    return {0, Channel::store, 0, -1, evidence.store_wait(status.seq).keys};
  }
  if (takes_from_anyone(evidence, status)) {
    return {status.group, status.channel, 0, anyone, {}};
  }
  return {status.group, status.channel, status.seq, status.in_message() ? status.group_rank : Rank{-1}, {}};
}

void link(const Evidence& evidence, const NodeIndex& index, BlockedSlot& slot) {
  for (const Rank rank : slot.missing) {
    const RankStatus& status = evidence.status_of(rank);
    if (status.waits()) {
      slot.next.push_back(index.at(key_of(evidence, status)));
    }
  }
  make_set(slot.next);
}

using Slots = std::vector<std::size_t>;  // indexes

// The sets of slots that all wait for each other, those with the lowest slot first. A slot is in one when its
// strong component has more than one slot, or it waits for itself.
std::vector<Slots> cycles(const std::vector<BlockedSlot>& slots) {
  std::vector<Slots> next;
  for (const BlockedSlot& slot : slots) {
    next.push_back(slot.next);
  }
  std::vector<Slots> members = strong_components(next);
  std::erase_if(members, [&](const Slots& cycle) {
    return cycle.size() == 1 && std::ranges::count(next[cycle[0]], cycle[0]) == 0;
  });
  return members;
}

// The shortest path from `start` back to itself, if it has fewer slots than `limit`; else empty.
Slots way_back(const std::vector<BlockedSlot>& slots, std::size_t start, std::size_t limit) {
  constexpr std::size_t unseen = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> before(slots.size(), unseen);
  Slots layer{start};
  for (std::size_t length = 1; length < limit && !layer.empty(); ++length) {
    Slots further;
    for (const std::size_t from : layer) {
      for (const std::size_t to : slots[from].next) {
        if (to == start) {
          Slots way{from};
          while (way.back() != start) {
            way.push_back(before[way.back()]);
          }
          std::ranges::reverse(way);
          return way;
        }
        if (before[to] == unseen) {
          before[to] = from;
          further.push_back(to);
        }
      }
    }
    layer = std::move(further);
  }
  return {};
}

// The shortest cycle among slots that all wait for each other, starting at its lowest slot. A slot that waits for one
// other shares its cycles with it, so paths are searched from those that wait for several.
Slots shortest_cycle(const std::vector<BlockedSlot>& slots, const Slots& cycle) {
  Slots starts;
  std::ranges::copy_if(cycle, std::back_inserter(starts),
                       [&](std::size_t i) { return slots[i].next.size() > 1; });
  if (starts.empty()) {
    starts.push_back(cycle.front());
  }
  Slots best;
  for (const std::size_t start : starts) {
    const std::size_t limit = best.empty() ? cycle.size() + 1 : best.size();
    if (Slots way = way_back(slots, start, limit); !way.empty()) {
      best = std::move(way);
    }
  }
  std::ranges::rotate(best, std::ranges::min_element(best));
  return best;
}

// The ranks that wait in one of these slots and are missing in one of them.
std::vector<Rank> participants(const std::vector<BlockedSlot>& slots, const Slots& cycle) {
  std::vector<Rank> missing;
  std::vector<Rank> waiting;
  for (const std::size_t i : cycle) {
    missing.insert(missing.end(), slots[i].missing.begin(), slots[i].missing.end());
    waiting.insert(waiting.end(), slots[i].waiting.begin(), slots[i].waiting.end());
  }
  make_set(missing);
  make_set(waiting);
  std::vector<Rank> both;
  std::ranges::set_intersection(missing, waiting, std::back_inserter(both));
  return both;
}

void blame_cycles(const std::vector<BlockedSlot>& slots, Blame& blame) {
  for (const Slots& cycle : cycles(slots)) {
    const std::vector<Rank> ranks = participants(slots, cycle);
    blame.culprits.insert(blame.culprits.end(), ranks.begin(), ranks.end());
    if (blame.cycles++ == 0) {
      blame.slots = shortest_cycle(slots, cycle);
      blame.shortest = participants(slots, blame.slots);
    }
  }
  blame.cycle = blame.cycles > 0;
}

}  // namespace

std::vector<BlockedSlot> blocked_slots(const Evidence& evidence) {
  NodeIndex index;
  for (const RankStatus& status : evidence.ranks) {
    if (status.waits()) {
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
    if (!status.waits()) {
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
    // A rank that receives from anyone does not wait for others that do the same, unless there are only those.
    if (is_point_to_point(blocked.kind) && blocked.waiting.size() > 1) {
      std::vector<Rank> others;
      std::ranges::set_difference(blocked.missing, blocked.waiting, std::back_inserter(others));
      blocked.missing = others.empty() ? blocked.waiting : others;
    }
    link(evidence, index, blocked);
  }
  return slots;
}

std::vector<RankStatus> with_the_hopeful_at_work(const Evidence& evidence,
                                                 const std::vector<BlockedSlot>& slots) {
  std::vector<RankStatus> ranks(evidence.ranks.begin(), evidence.ranks.end());
  const auto state_of = [&ranks](Rank rank) -> RankStatus::State& {
    return ranks[static_cast<std::size_t>(rank)].state;
  };
  const auto works = [&](Rank rank) { return state_of(rank) == RankStatus::State::running; };
  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    for (const BlockedSlot& slot : slots) {
      if (std::ranges::all_of(slot.missing, works) && !std::ranges::all_of(slot.waiting, works)) {
        std::ranges::for_each(slot.waiting, [&](Rank rank) { state_of(rank) = RankStatus::State::running; });
        has_moved = true;
      }
    }
  }
  return ranks;
}

Blame find_blame(const Evidence& evidence, const std::vector<BlockedSlot>& slots) {
  const auto is_gone = [&](Rank rank) { return !evidence.status_of(rank).waits(); };
  // One rank has to set a key, but it is unknown which. Ranks that ended normally may have had nothing to do with it,
  // as long as another rank still waits.
  const auto may_be_well = [&](const BlockedSlot& slot) {
    return slot.channel == Channel::store && !std::ranges::all_of(slot.missing, is_gone) &&
           std::ranges::none_of(slot.missing,
                                [&](Rank rank) { return evidence.status_of(rank).has_failed(); });
  };
  Blame blame;
  Slots mixed;  // they miss ranks that wait elsewhere, too
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (may_be_well(slots[i])) {
      continue;
    }
    const std::size_t culprits = blame.culprits.size();
    std::ranges::copy_if(slots[i].missing, std::back_inserter(blame.culprits), is_gone);
    const std::size_t gone = blame.culprits.size() - culprits;
    if (gone > 0) {
      (gone == slots[i].missing.size() ? blame.slots : mixed).push_back(i);
    }
  }
  blame.slots.insert(blame.slots.end(), mixed.begin(), mixed.end());
  if (blame.culprits.empty()) {
    blame_cycles(slots, blame);
  }
  make_set(blame.culprits);
  return blame;
}

}  // namespace rollcall::check
