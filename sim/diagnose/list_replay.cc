#include "sim/diagnose/list_replay.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <tuple>

#include <fmt/core.h>

#include "sim/base/expects.h"

namespace rollcall::check {
namespace {

// Calls with equal texts agree. The two ends of a message agree if they move the same elements.
std::string agreement_text(const ProgramCall& call) {
  return is_point_to_point(call.kind) ? fmt::format("{} {}", call.numel, call.dtype) : call.pairing;
}

}  // namespace

// One replay, to the point where nothing moves anymore.
class ListReplay::Run {
 public:
  Run(const ListReplay& job, const std::vector<const Items*>& lists)
      : job_(job), lists_(lists), heads_(lists.size()) {
    for (std::size_t rank = 0; rank < lists.size(); ++rank) {
      come(static_cast<Rank>(rank));
    }
    while (!ready_.empty()) {
      const Rank rank = ready_.back();
      ready_.pop_back();
      come(rank);
    }
  }

  std::size_t made(Rank rank) const { return head(rank).at; }
  // How many collectives met calls from different lines of the program.
  std::size_t odd() const { return odd_; }

  // `goes_on`, by rank: whether it may call anything after its last call.
  Hang hang(const std::vector<bool>& goes_on) const {
    Hang hang;
    for (const Meeting& meeting : disagreements_) {
      std::map<std::uint32_t, CallsAt> variants;
      for (const Rank rank : meeting) {
        const Item& item = list(rank)[head(rank).at];
        variants[item.what][rank] = item.at;
      }
      for (auto& [what, calls] : variants) {
        hang.variants.push_back(std::move(calls));
      }
      return hang;  // anything after the first disagreement may be its consequence
    }
    const std::vector<bool> served = may_be_served(goes_on);
    std::map<std::pair<std::uint32_t, std::int64_t>, std::size_t> places;
    for (Rank rank = 0; rank < static_cast<Rank>(lists_.size()); ++rank) {
      if (is_over(rank) || served[static_cast<std::size_t>(rank)]) {
        continue;
      }
      const Item& item = waiting_item(rank);
      std::size_t place = hang.places.size();
      if (!is_point_to_point(item.kind)) {
        place = places.try_emplace({item.group, head(rank).position}, place).first->second;
      }
      if (place == hang.places.size()) {
        hang.places.emplace_back().missing = RankSet::of(waits_for(rank));
      }
      hang.places[place].at[rank] = item.at;
    }
    return hang;
  }

 private:
  using Meeting = std::vector<Rank>;
  using Lane = std::tuple<std::uint32_t, Rank, Rank>;  // group, source, destination

  // The position of a rank in its list.
  struct Head {
    std::size_t at = 0;         // in its items
    std::size_t end = 0;        // of the batch that it is in; `at` if it is not in one
    std::size_t open = 0;       // messages of the batch that are unanswered
    std::int64_t position = 0;  // of its collective on the group
    std::map<std::uint32_t, std::int64_t> positions{};  // collectives of each group so far
  };
  struct Waiting {
    Rank rank = 0;
    std::size_t item = 0;
  };
  struct Ends {
    std::vector<Waiting> sends;  // unanswered ones, oldest first
    std::vector<Waiting> receives;
  };

  const Items& list(Rank rank) const { return *lists_[static_cast<std::size_t>(rank)]; }
  Head& head(Rank rank) { return heads_[static_cast<std::size_t>(rank)]; }
  const Head& head(Rank rank) const { return heads_[static_cast<std::size_t>(rank)]; }
  bool is_over(Rank rank) const { return head(rank).at == list(rank).size(); }

  // The lane of a message, which its sender and its receiver share.
  static Lane lane_of(Rank rank, const Item& item) {
    return item.kind == OpKind::send ? Lane{item.group, rank, item.peer} : Lane{item.group, item.peer, rank};
  }

  void come(Rank rank) {
    if (is_over(rank)) {
      return;
    }
    Head& own = head(rank);
    const Item& item = list(rank)[own.at];
    if (!is_point_to_point(item.kind)) {
      own.position = ++own.positions[item.group];
      meet(rank, item);
      return;
    }
    own.end = own.at + 1;
    while (own.end < list(rank).size() && list(rank)[own.end].goes_with_last) {
      ++own.end;
    }
    own.open = own.end - own.at;
    for (std::size_t i = own.at, end = own.end; i < end; ++i) {
      exchange(rank, i);
    }
  }

  void go_on(Rank rank, std::size_t items) {
    head(rank).at += items;
    ready_.push_back(rank);
  }

  void meet(Rank rank, const Item& item) {
    if (job_.is_unknown_[static_cast<std::size_t>(rank)]) {
      go_on(rank, 1);  // nobody waits for it
      return;
    }
    const std::vector<Rank>& members = job_.members_[item.group];
    if (!std::ranges::binary_search(members, rank)) {
      disagreements_.push_back({rank});  // an edit that gives it a call of others
      return;
    }
    Meeting& meeting = meetings_[{item.group, head(rank).position}];
    meeting.push_back(rank);
    expects(meeting.size() <= members.size(), "a member comes once");
    if (meeting.size() < members.size()) {
      return;
    }
    const bool agree = std::ranges::all_of(
        meeting, [&](Rank other) { return list(other)[head(other).at].what == item.what; });
    if (!agree) {
      disagreements_.push_back(meeting);
      return;
    }
    odd_ += std::ranges::all_of(meeting,
                                [&](Rank other) { return list(other)[head(other).at].line == item.line; })
                ? 0
                : 1;
    for (const Rank other : meeting) {
      go_on(other, 1);
    }
  }

  void exchange(Rank rank, std::size_t at) {
    const Item& item = list(rank)[at];
    if (job_.is_unknown_[static_cast<std::size_t>(item.peer)]) {
      meet_one(rank);
      return;
    }
    Ends& ends = ends_[lane_of(rank, item)];
    const bool sends = item.kind == OpKind::send;
    std::vector<Waiting>& others = sends ? ends.receives : ends.sends;
    if (others.empty()) {
      (sends ? ends.sends : ends.receives).push_back({rank, at});
      return;
    }
    const Waiting other = others.front();
    others.erase(others.begin());
    if (list(other.rank)[other.item].what != item.what) {
      disagreements_.push_back({rank, other.rank});
      return;
    }
    meet_one(rank);
    meet_one(other.rank);
  }

  void meet_one(Rank rank) {
    Head& own = head(rank);
    if (--own.open == 0) {
      go_on(rank, own.end - own.at);
    }
  }

  // The call in which a rank waits: in a batch, the first unanswered message.
  const Item& waiting_item(Rank rank) const {
    const Head& own = head(rank);
    const Item& first = list(rank)[own.at];
    if (!is_point_to_point(first.kind)) {
      return first;
    }
    for (std::size_t i = own.at; i < own.end; ++i) {
      if (is_unanswered(rank, i)) {
        return list(rank)[i];
      }
    }
    return first;
  }

  bool is_unanswered(Rank rank, std::size_t at) const {
    const auto ends = ends_.find(lane_of(rank, list(rank)[at]));
    const auto is_it = [&](const Waiting& waiting) { return waiting.rank == rank && waiting.item == at; };
    return ends != ends_.end() && (std::ranges::any_of(ends->second.sends, is_it) ||
                                   std::ranges::any_of(ends->second.receives, is_it));
  }

  std::vector<Rank> waits_for(Rank rank) const {
    const Head& own = head(rank);
    const Item& first = list(rank)[own.at];
    std::vector<Rank> ranks;
    if (is_point_to_point(first.kind)) {
      for (std::size_t i = own.at; i < own.end; ++i) {
        if (is_unanswered(rank, i)) {
          ranks.push_back(list(rank)[i].peer);
        }
      }
      return ranks;
    }
    const Meeting& meeting = meetings_.at({first.group, own.position});
    std::ranges::copy_if(job_.members_[first.group], std::back_inserter(ranks),
                         [&](Rank member) { return std::ranges::find(meeting, member) == meeting.end(); });
    return ranks;
  }

  // By rank: whether all its waits lead to ranks that may yet make the call.
  std::vector<bool> may_be_served(const std::vector<bool>& goes_on) const {
    std::vector<bool> served(lists_.size());
    std::vector<std::vector<Rank>> waits(lists_.size());
    for (std::size_t rank = 0; rank < lists_.size(); ++rank) {
      const bool has_ended = is_over(static_cast<Rank>(rank));
      served[rank] = has_ended && goes_on[rank];
      waits[rank] = has_ended ? std::vector<Rank>() : waits_for(static_cast<Rank>(rank));
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t rank = 0; rank < lists_.size(); ++rank) {
        const bool now = !waits[rank].empty() && std::ranges::all_of(waits[rank], [&](Rank other) {
          return served[static_cast<std::size_t>(other)];
        });
        changed = changed || (now && !served[rank]);
        served[rank] = served[rank] || now;
      }
    }
    return served;
  }

  const ListReplay& job_;
  const std::vector<const Items*>& lists_;
  std::vector<Head> heads_;
  std::vector<Rank> ready_;
  std::map<std::pair<std::uint32_t, std::int64_t>, Meeting> meetings_;
  std::map<Lane, Ends> ends_;
  std::vector<Meeting> disagreements_;
  std::size_t odd_ = 0;
};

namespace {

std::string line_text(const ProgramCall& call) { return call.label + " " + call.site; }

}  // namespace

ListReplay::ListReplay(std::span<const RankProgram> programs, const Unknown& unknown)
    : programs_(programs), is_unknown_(programs.size()) {
  for (const Rank rank : unknown.lists.to_vector()) {
    is_unknown_[static_cast<std::size_t>(rank)] = true;
  }
  std::vector<Rank> world(programs.size());
  std::iota(world.begin(), world.end(), 0);
  for (const RankProgram& program : programs) {
    for (const ProgramGroup& group : program.groups) {
      add_members(group.name, group.ranks.empty() ? world : group.ranks);
    }
    for (const ProgramCall& call : program.calls) {
      add_members(call.group, {program.rank});
      what_.try_emplace(agreement_text(call), static_cast<std::uint32_t>(what_.size()));
      lines_.try_emplace(line_text(call), static_cast<std::uint32_t>(lines_.size()));
    }
  }
  for (std::vector<Rank>& members : members_) {
    std::erase_if(members, [&](Rank rank) { return is_unknown_[static_cast<std::size_t>(rank)]; });
  }
  std::vector<const Items*> lists;
  for (const RankProgram& program : programs) {
    expects(static_cast<std::size_t>(program.rank) == items_.size(), "the lists of all ranks are there");
    items_.push_back(items_with(program.rank, {}));
  }
  for (const Items& items : items_) {
    lists.push_back(&items);
  }
  const Run run(*this, lists);
  for (std::size_t rank = 0; rank < items_.size(); ++rank) {
    made_.push_back(run.made(static_cast<Rank>(rank)));
    goes_on_.push_back(made_.back() < items_[rank].size());
  }
  hang_ = run.hang(goes_on_);
  for (const Rank rank : unknown.ends.to_vector()) {
    goes_on_[static_cast<std::size_t>(rank)] = true;
  }
  is_explained_ = run.hang(goes_on_).is_empty();
  odd_ = run.odd();
}

// Dumps may disagree about who is in a group, and whoever calls on it is. `ranks` ascend.
void ListReplay::add_members(const std::string& group, const std::vector<Rank>& ranks) {
  const auto [place, is_new] = groups_.try_emplace(group, static_cast<std::uint32_t>(members_.size()));
  if (is_new) {
    members_.emplace_back();
  }
  std::vector<Rank>& members = members_[place->second];
  if (std::ranges::includes(members, ranks)) {
    return;
  }
  std::vector<Rank> all;
  std::ranges::set_union(members, ranks, std::back_inserter(all));
  members = std::move(all);
}

ListReplay::Item ListReplay::item_of(const ProgramCall& call, std::size_t at) const {
  const auto what = what_.find(agreement_text(call));
  expects(what != what_.end(), "calls are put in that others make");
  // A message that is put in may be in a place that is not known.
  const auto line = lines_.find(line_text(call));
  return {.kind = call.kind,
          .group = groups_.at(call.group),
          .peer = is_point_to_point(call.kind) ? call.peer : -1,
          .what = what->second,
          .line = line == lines_.end() ? static_cast<std::uint32_t>(lines_.size()) : line->second,
          .at = at};
}

ListReplay::Items ListReplay::items_with(Rank rank, const CallEdits& edits) const {
  const std::vector<ProgramCall>& calls = programs_[static_cast<std::size_t>(rank)].calls;
  Items items;
  std::optional<std::int64_t> batch;  // of the item before
  const auto add = [&](const ProgramCall& call, std::size_t at, bool is_new) {
    Item item = item_of(call, at);
    // A message that is inserted next to a batch is sent with it.
    item.goes_with_last = call.batch >= 0 && batch && (is_new || call.batch == *batch);
    batch = call.batch < 0 ? std::nullopt : std::optional(is_new && batch ? *batch : call.batch);
    items.push_back(item);
  };
  std::size_t next = 0;
  const auto copy_until = [&](std::size_t end) {
    for (; next < std::min(end, calls.size()); ++next) {
      add(calls[next], next, false);
    }
  };
  for (const CallEdit& edit : edits_of(edits, rank)) {
    copy_until(static_cast<std::size_t>(edit.at));
    for (const ProgramCall& call : edit.inserted) {
      add(call, next, true);
    }
    next += static_cast<std::size_t>(edit.dropped);
  }
  copy_until(calls.size());
  return items;
}

bool ListReplay::is_explained_with(const CallEdits& edits) const {
  std::map<Rank, Items> changed;
  std::vector<bool> goes_on = goes_on_;
  for (const CallEdit& edit : edits) {
    const auto rank = static_cast<std::size_t>(edit.rank);
    if (!changed.contains(edit.rank)) {
      changed[edit.rank] = items_with(edit.rank, edits);
    }
    const bool is_at_end = static_cast<std::size_t>(edit.at) >= programs_[rank].calls.size();
    goes_on[rank] = goes_on[rank] || (is_at_end && !edit.inserted.empty());
  }
  std::vector<const Items*> lists;
  for (std::size_t rank = 0; rank < items_.size(); ++rank) {
    const auto own = changed.find(static_cast<Rank>(rank));
    lists.push_back(own == changed.end() ? &items_[rank] : &own->second);
  }
  const Run run(*this, lists);
  return run.hang(goes_on).is_empty() && 2 * run.odd() <= odd_;
}

}  // namespace rollcall::check
