#include "scenarios/record/script_notes.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rollcall::scenario {
namespace {

using traces::ScriptCall;
using traces::ScriptEvent;
using traces::ScriptRank;
using traces::ScriptRecord;
using traces::ScriptSite;

bool meets_by_number(const ScriptCall& call) {
  return call.op != "send" && call.op != "recv" && call.op != "new_group" && call.op != "split_group" &&
         call.op != "destroy_process_group" && call.op != "monitored_barrier";
}

// Older records have one word for these functions of torch.
bool is_of_objects(const ScriptSite& site) {
  constexpr std::array<std::string_view, 5> functions = {"all_gather_object", "broadcast_object_list",
                                                         "gather_object", "scatter_object_list", "objects"};
  return std::ranges::find(functions, site.reason) != functions.end();
}

// A line and a function of torch, regardless of the caller.
using PlaceKey = std::tuple<std::string, std::int64_t, std::string>;

PlaceKey key_of(const ScriptSite& site) { return {site.file, site.line, site.reason}; }

// Sets of places, merged one by one.
class Places {
 public:
  std::size_t number_of(const ScriptSite& site) {
    const auto [known, is_new] = numbers_.emplace(key_of(site), parents_.size());
    if (is_new) {
      parents_.push_back(parents_.size());
      ranks_.emplace_back();
      sites_.push_back(site);
    }
    return known->second;
  }

  void visited_by(std::size_t place, Rank rank) { ranks_[place].insert(rank); }

  // Unless some rank reaches both.
  void merge(std::size_t a, std::size_t b) {
    a = find(a);
    b = find(b);
    const auto is_in_a = [&](Rank rank) { return ranks_[a].contains(rank); };
    if (a == b || std::ranges::any_of(ranks_[b], is_in_a)) {
      return;
    }
    parents_[std::max(a, b)] = std::min(a, b);
    ranks_[std::min(a, b)].merge(ranks_[std::max(a, b)]);
  }

  // "train (train.py:61)", "ddp.bucket (train.py:61)". Of places that were merged: "train (train.py:61 or 70)", because
  // each rank is at only one of these lines.
  std::string label(std::size_t place) const {
    std::set<std::string> names;
    std::map<std::string, std::set<std::int64_t>> lines;  // by file
    for (std::size_t each = 0; each < sites_.size(); ++each) {
      const ScriptSite& site = sites_[each];
      if (find(each) != find(place)) {
        continue;
      }
      if (!site.reason.empty() || site.function != "<module>") {
        names.insert(site.reason.empty() ? site.function : site.reason);
      }
      lines[site.file.substr(site.file.rfind('/') + 1)].insert(site.line);
    }
    std::vector<std::string> where;
    for (const auto& [file, numbers] : lines) {
      where.push_back(fmt::format("{}:{}", file, fmt::join(numbers, " or ")));
    }
    return names.empty() ? fmt::format("{}", fmt::join(where, " or "))
                         : fmt::format("{} ({})", fmt::join(names, " or "), fmt::join(where, " or "));
  }

 private:
  std::size_t find(std::size_t place) const {
    while (parents_[place] != place) {
      place = parents_[place];
    }
    return place;
  }

  std::map<PlaceKey, std::size_t> numbers_;
  std::vector<std::size_t> parents_;  // of a set's later places, its first
  std::vector<std::set<Rank>> ranks_;
  std::vector<ScriptSite> sites_;
};

class NoteTaker {
 public:
  NoteTaker(const ScriptRecord& record, const NoteOptions& options)
      : record_(record), notes_(record.ranks.size()), options_(options) {}

  std::vector<CallNotes> take() {
    for (std::size_t i = 0; i < record_.ranks.size(); ++i) {
      line_up(i);
    }
    if (options_.labels) {
      write_labels();
    }
    write_object_sizes();
    write_peers();
    return std::move(notes_);
  }

 private:
  // A number, and a member of its own part: all parts of a split group have the same number.
  using Group = std::pair<std::int64_t, Rank>;

  struct Arrival {
    std::size_t rank = 0;  // position in the record
    std::uint32_t call = 0;
  };

  const ScriptCall& call_of(const Arrival& arrival) const {
    return record_.ranks[arrival.rank].calls[arrival.call];
  }

  // The k-th call of a group pairs with the others' k-th.
  void line_up(std::size_t index) {
    const ScriptRank& rank = record_.ranks[index];
    std::map<Group, std::size_t> counts;
    std::map<std::int64_t, Rank> parts;  // of groups that were split off others
    for (const ScriptEvent& event : rank.events) {
      if (event.kind != ScriptEvent::Kind::call || is_left_out(rank, event)) {
        continue;
      }
      const ScriptCall& call = rank.calls[event.calls.front()];
      if (call.op == "split_group" && !call.ranks.empty()) {
        parts[call.group] = std::ranges::min(call.ranks);
      }
      if (!meets_by_number(call)) {
        continue;
      }
      const auto part = parts.find(call.group);
      const Group group = {call.group, part == parts.end() ? -1 : part->second};
      std::vector<std::vector<Arrival>>& meetings = meetings_[group];
      const std::size_t number = counts[group]++;
      if (number == meetings.size()) {
        meetings.emplace_back();
      }
      meetings[number].push_back({index, event.calls.front()});
    }
  }

  // ---- Labels ----

  void write_labels() {
    Places places;
    for (const ScriptRank& rank : record_.ranks) {
      for (const ScriptCall& call : rank.calls) {
        places.visited_by(places.number_of(call.site), rank.rank);
      }
    }
    std::set<std::pair<std::size_t, std::size_t>> met;
    for (const auto& [group, meetings] : meetings_) {
      for (const std::vector<Arrival>& meeting : meetings) {
        for (const Arrival& arrival : meeting) {
          const std::size_t first = places.number_of(call_of(meeting.front()).site);
          const std::size_t other = places.number_of(call_of(arrival).site);
          // Two functions of torch that happen to make the same call do not belong together.
          const bool is_same_kind = call_of(meeting.front()).op == call_of(arrival).op &&
                                    call_of(meeting.front()).site.reason == call_of(arrival).site.reason;
          if (is_same_kind && met.insert({first, other}).second) {
            places.merge(first, other);
          }
        }
      }
    }
    for (std::size_t i = 0; i < record_.ranks.size(); ++i) {
      const std::vector<ScriptCall>& calls = record_.ranks[i].calls;
      for (std::uint32_t call = 0; call < calls.size(); ++call) {
        if (calls[call].site.line > 0 && !is_about_join(calls[call].site)) {
          notes_[i].labels.emplace(call, places.label(places.number_of(calls[call].site)));
        }
      }
    }
  }

  // A rank that has joined pairs with calls of other lines, as it should.
  static bool is_about_join(const ScriptSite& site) {
    return site.shadow || site.reason.starts_with("join.");
  }

  // ---- Sizes ----

  void write_object_sizes() {
    for (const auto& [group, meetings] : meetings_) {
      for (const std::vector<Arrival>& meeting : meetings) {
        const auto is_object = [&](const Arrival& arrival) { return is_of_objects(call_of(arrival).site); };
        if (!std::ranges::all_of(meeting, is_object)) {
          continue;
        }
        std::int64_t largest = 0;
        for (const Arrival& arrival : meeting) {
          largest = std::max(largest, numel_of(call_of(arrival)));
        }
        for (const Arrival& arrival : meeting) {
          std::int64_t& numel = notes_[arrival.rank].numel[arrival.call];
          numel = std::max(numel, largest);
        }
      }
    }
  }

  // ---- Peers ----

  // All messages sent, or received, at one line: the peers of each rank there.
  struct Line {
    std::map<Rank, std::set<Rank>> peers;  // by rank
    std::vector<Arrival> calls;
  };

  void write_peers() {
    std::map<std::pair<PlaceKey, std::string>, Line> lines;
    for (std::size_t i = 0; i < record_.ranks.size(); ++i) {
      const ScriptRank& rank = record_.ranks[i];
      for (std::uint32_t number = 0; number < rank.calls.size(); ++number) {
        const ScriptCall& call = rank.calls[number];
        if (call.peer) {
          Line& line = lines[{key_of(call.site), call.op}];
          line.peers[rank.rank].insert(*call.peer);
          line.calls.push_back({i, number});
        }
      }
    }
    for (const auto& [key, line] : lines) {
      if (const std::string expression = expression_for(line); !expression.empty()) {
        for (const Arrival& arrival : line.calls) {
          notes_[arrival.rank].peers.emplace(arrival.call, expression);
        }
      }
    }
  }

  // Returns an empty text if every rank has its own peers, or all have the same one.
  std::string expression_for(const Line& line) const {
    const auto has_one = [](const auto& entry) { return entry.second.size() == 1; };
    if (line.peers.size() < 2 || !std::ranges::all_of(line.peers, has_one)) {
      return {};
    }
    const Rank size = record_.ranks.front().world_size;
    const Rank distance = *line.peers.begin()->second.begin() - line.peers.begin()->first;
    const auto holds = [&](auto&& peer_of) {
      return std::ranges::all_of(
          line.peers, [&](const auto& entry) { return peer_of(entry.first) == *entry.second.begin(); });
    };
    const std::string sum = fmt::format("rank {} {}", distance < 0 ? '-' : '+', std::abs(distance));
    if (holds([&](Rank rank) { return rank + distance; })) {
      return sum;
    }
    for (const Rank step : {distance, distance > 0 ? distance - size : distance + size}) {
      if (holds([&](Rank rank) { return ((rank + step) % size + size) % size; })) {
        const bool is_short = std::abs(step) <= size / 2;
        const Rank shown = is_short ? step : step - (step > 0 ? size : -size);
        return fmt::format("(rank {} {}) % world_size", shown < 0 ? '-' : '+', std::abs(shown));
      }
    }
    return {};
  }

  const ScriptRecord& record_;
  std::vector<CallNotes> notes_;
  NoteOptions options_;
  std::map<Group, std::vector<std::vector<Arrival>>> meetings_;  // by group, then by number
};

}  // namespace

std::vector<CallNotes> script_notes(const ScriptRecord& record, const NoteOptions& options) {
  return NoteTaker(record, options).take();
}

}  // namespace rollcall::scenario
