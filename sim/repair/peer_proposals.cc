// The calls that ranks would make if they did as others of their role do.

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "sim/repair/difference.h"
#include "sim/repair/proposals.h"

namespace rollcall::check {
namespace {

constexpr std::size_t classes_max = 64;  // that are compared with each other
constexpr std::size_t models_max = 6;    // whose calls are tried for a class
constexpr std::size_t kinds_free = 2;    // of edits, however often: with more of them, the roles differ
constexpr std::size_t replaced_max = 8;  // calls by others, in one place: more of them are different work
constexpr std::size_t edited_calls_max = 256;  // of one rank, in several places

// How groups and partners of one rank correspond to those of another.
struct Correspondence {
  std::map<std::uint32_t, std::uint32_t> groups;
  std::map<Rank, Rank> peers;
};

// A number for a call, for comparing lists.
std::uint64_t exact(const ListedCall& call) {
  std::uint64_t hash = 0;
  for (const std::uint64_t part :
       {std::uint64_t{call.shape}, std::uint64_t{call.group}, static_cast<std::uint64_t>(call.peer + 1)}) {
    hash = (hash + part + 1) * 0xbf58476d1ce4e5b9;
    hash ^= hash >> 29U;
  }
  return hash;
}

std::vector<std::uint64_t> shapes_of(const CallList& list) {
  std::vector<std::uint64_t> shapes;
  std::ranges::transform(list.calls, std::back_inserter(shapes), &ListedCall::shape);
  return shapes;
}

std::vector<std::uint64_t> numbers_of(const std::vector<ListedCall>& calls) {
  std::vector<std::uint64_t> numbers;
  std::ranges::transform(calls, std::back_inserter(numbers), exact);
  return numbers;
}

// At least this many calls of two lists are not in both.
std::size_t bag_difference(std::vector<std::uint64_t> a, std::vector<std::uint64_t> b) {
  std::ranges::sort(a);
  std::ranges::sort(b);
  std::vector<std::uint64_t> apart;
  std::ranges::set_symmetric_difference(a, b, std::back_inserter(apart));
  return apart.size();
}

// The pairs with the most votes; no element is in two of them.
template <typename Key>
std::map<Key, Key> majority(const std::map<Key, std::map<Key, int>>& votes) {
  std::vector<std::tuple<int, Key, Key>> pairs;
  for (const auto& [from, counts] : votes) {
    for (const auto& [to, count] : counts) {
      pairs.emplace_back(-count, from, to);
    }
  }
  std::ranges::sort(pairs);
  std::map<Key, Key> chosen;
  std::set<Key> taken;
  for (const auto& [count, from, to] : pairs) {
    if (!chosen.contains(from) && taken.insert(to).second) {
      chosen[from] = to;
    }
  }
  return chosen;
}

// Derived from the calls that both make, one after the other.
Correspondence correspondence(const CallLists& lists, const CallList& model, const CallList& own,
                              const std::vector<Hunk>& hunks) {
  std::map<std::uint32_t, std::map<std::uint32_t, int>> groups;
  std::map<Rank, std::map<Rank, int>> peers;
  std::size_t i = 0;
  std::size_t j = 0;
  const auto match_until = [&](std::size_t end) {
    for (; i < end && j < model.calls.size(); ++i, ++j) {
      const ListedCall& mine = own.calls[i];
      const ListedCall& its = model.calls[j];
      if (lists.are_as_large(its.group, mine.group)) {
        ++groups[its.group][mine.group];
      }
      if (its.peer >= 0 && mine.peer >= 0) {
        ++peers[its.peer][mine.peer];
      }
    }
  };
  for (const Hunk& hunk : hunks) {
    match_until(hunk.at);
    i += hunk.dropped;
    j += hunk.inserted;
  }
  match_until(own.calls.size());
  return {majority(groups), majority(peers)};
}

// The only group of `rank` that is as large as `group` and corresponds to no other; empty if there is not exactly one.
std::optional<std::uint32_t> group_like(const CallLists& lists, std::uint32_t group, Rank rank,
                                        const Correspondence& same) {
  std::optional<std::uint32_t> found;
  for (std::uint32_t other = 0; other < lists.group_count(); ++other) {
    const bool is_taken =
        std::ranges::any_of(same.groups, [&](const auto& pair) { return pair.second == other; });
    if (!is_taken && lists.is_member(rank, other) && lists.may_be_as_large(other, group)) {
      if (found) {
        return std::nullopt;
      }
      found = other;
    }
  }
  return found;
}

// The calls of `model` as another rank would make them. Empty if a call's group or partner is unknown.
std::optional<std::vector<ListedCall>> as_own(const CallLists& lists, const CallList& model, Rank rank,
                                              const Correspondence& same) {
  std::vector<ListedCall> calls;
  for (const ListedCall& its : model.calls) {
    ListedCall call = its;
    if (const auto group = same.groups.find(its.group); group != same.groups.end()) {
      call.group = group->second;
    } else if (!lists.is_member(rank, its.group)) {
      const auto like = group_like(lists, its.group, rank, same);
      if (!like) {
        return std::nullopt;
      }
      call.group = *like;
    }
    if (its.peer >= 0) {
      const auto peer = same.peers.find(its.peer);
      if (peer == same.peers.end()) {
        return std::nullopt;
      }
      call.peer = peer->second;
    }
    calls.push_back(call);
  }
  return calls;
}

// Kinds of edits, equal for ranks that make the same mistake: the shapes that are left out and inserted, with the sizes
// of their groups.
using Shapes = std::vector<std::pair<Symbol, std::size_t>>;
using Kinds = std::set<std::pair<Shapes, Shapes>>;

// One rank's edits.
struct RankEdits {
  CallEdits edits;
  Kinds kinds;
};

OpenEnds open_ends(const CallList& own, const CallList& model) {
  return {.old_list = !own.program->is_whole, .new_list = !model.program->is_whole};
}

std::size_t edited_calls(const std::vector<Hunk>& hunks) {
  std::size_t calls = 0;
  for (const Hunk& hunk : hunks) {
    calls += hunk.dropped + hunk.inserted;
  }
  return calls;
}

// At the end of a list that breaks off, the last calls may be the model's calls with other arguments. The last hunk
// then replaces them, instead of leaving them out or inserting the model's calls before them.
void replace_at_end(const CallList& own, const CallList& model, const std::vector<ListedCall>& wanted,
                    std::vector<Hunk>& hunks) {
  if (hunks.empty()) {
    return;
  }
  Hunk& last = hunks.back();
  const std::size_t rest = own.calls.size() - last.at;
  if (last.dropped == rest) {
    last.inserted = std::max(last.inserted, std::min(last.dropped, wanted.size() - last.from));
  } else if (last.dropped == 0 && last.inserted == rest) {
    const auto is_alike = [&](std::size_t i) {
      return own.program->calls[last.at + i].kind == model.program->calls[last.from + i].kind &&
             own.calls[last.at + i].group == wanted[last.from + i].group;
    };
    last.dropped = is_alike(0) ? rest : 0;
  }
}

std::optional<RankEdits> edits_to(const CallLists& lists, const CallList& own, const CallList& model,
                                  const std::vector<ListedCall>& wanted) {
  auto hunks =
      difference_of(numbers_of(own.calls), numbers_of(wanted), edited_calls_max, open_ends(own, model));
  if (!hunks) {
    return std::nullopt;
  }
  if (!own.program->is_whole) {
    replace_at_end(own, model, wanted, *hunks);
  }
  const Rank rank = own.program->rank;
  RankEdits found;
  for (const Hunk& hunk : *hunks) {
    CallEdit edit{.rank = rank,
                  .at = static_cast<std::int64_t>(hunk.at),
                  .dropped = static_cast<std::int64_t>(hunk.dropped)};
    Shapes out;
    Shapes in;
    for (std::size_t i = hunk.at; i < hunk.at + hunk.dropped; ++i) {
      if (own.calls[i].is_fixed) {
        return std::nullopt;
      }
      out.emplace_back(own.calls[i].shape, lists.members(own.calls[i].group).size());
    }
    for (std::size_t j = hunk.from; j < hunk.from + hunk.inserted; ++j) {
      if (wanted[j].is_fixed) {
        return std::nullopt;
      }
      edit.inserted.push_back(
          lists.as_call_of(rank, model.program->calls[j], wanted[j].group, wanted[j].peer));
      in.emplace_back(wanted[j].shape, lists.members(wanted[j].group).size());
    }
    found.edits.push_back(std::move(edit));
    found.kinds.insert({std::move(out), std::move(in)});
  }
  const bool is_other_work = std::ranges::any_of(
      *hunks, [](const Hunk& hunk) { return std::min(hunk.dropped, hunk.inserted) > replaced_max; });
  const bool have_other_roles =
      is_other_work || (found.kinds.size() > kinds_free &&
                        edited_calls(*hunks) > std::max(own.calls.size(), wanted.size()) / 4);
  return have_other_roles ? std::nullopt : std::optional(std::move(found));
}

std::optional<RankEdits> edits_as(const CallLists& lists, Rank rank, Rank other) {
  const CallList& own = lists.of(rank);
  const CallList& model = lists.of(other);
  const auto rough = difference_of(shapes_of(own), shapes_of(model), edited_calls_max, open_ends(own, model));
  if (!rough) {
    return std::nullopt;
  }
  const auto wanted = as_own(lists, model, rank, correspondence(lists, model, own, *rough));
  return wanted ? edits_to(lists, own, model, *wanted) : std::nullopt;
}

// A call that is left out in one place and inserted in another has moved, and counts once.
std::size_t count_kinds(const RankEdits& edits) {
  std::size_t moved = 0;
  for (const auto& [out, in] : edits.kinds) {
    moved += !out.empty() && edits.kinds.contains({in, out}) && out != in ? 1 : 0;
  }
  return edits.kinds.size() - moved / 2;
}

}  // namespace

std::vector<Proposal> as_peers_do(const CallLists& lists) {
  const std::vector<CallClass>& classes = lists.classes();
  std::vector<Proposal> proposals;
  if (classes.size() > classes_max) {
    return proposals;
  }
  std::map<Kinds, std::vector<std::size_t>> alike;  // proposals, by kinds
  for (const CallClass& own : classes) {
    std::vector<std::pair<std::size_t, const CallClass*>> models;
    for (const CallClass& model : classes) {
      if (&model != &own) {
        const std::size_t apart =
            bag_difference(shapes_of(lists.of(own.front())), shapes_of(lists.of(model.front())));
        models.emplace_back(apart, &model);
      }
    }
    std::ranges::stable_sort(models, {}, [](const auto& model) { return model.first; });
    models.resize(std::min(models.size(), models_max));
    for (const auto& [apart, model] : models) {
      Proposal proposal;
      proposal.witnesses = model->size();
      Kinds kinds;
      for (const Rank rank : own) {
        const auto edits = edits_as(lists, rank, model->front());
        if (!edits) {
          proposal.edits.clear();
          break;
        }
        proposal.kinds = count_kinds(*edits);
        kinds = edits->kinds;
        proposal.edits.insert(proposal.edits.end(), edits->edits.begin(), edits->edits.end());
      }
      if (!proposal.edits.empty()) {
        proposal.ranks = own;
        alike[kinds].push_back(proposals.size());
        proposals.push_back(std::move(proposal));
      }
    }
  }
  // The same mistake by ranks of several roles.
  for (const auto& [kinds, members] : alike) {
    Proposal all;
    std::set<Rank> ranks;
    for (const std::size_t member : members) {
      const Proposal& one = proposals[member];
      if (!ranks.contains(one.ranks.front())) {
        ranks.insert(one.ranks.begin(), one.ranks.end());
        all.edits.insert(all.edits.end(), one.edits.begin(), one.edits.end());
        all.kinds = one.kinds;
        all.witnesses += one.witnesses;
      }
    }
    if (ranks.size() > proposals[members.front()].ranks.size()) {
      all.ranks.assign(ranks.begin(), ranks.end());
      sort_edits(all.edits);
      proposals.push_back(std::move(all));
    }
  }
  return proposals;
}

}  // namespace rollcall::check
