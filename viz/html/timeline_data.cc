#include "viz/html/timeline_data.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <tuple>
#include <unordered_map>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "viz/base/gzip_stream.h"
#include "viz/html/markup.h"
#include "viz/rows/group_families.h"
#include "viz/rows/phrases.h"
#include "viz/rows/span_text.h"
#include "viz/rows/state_rows.h"
#include "viz/rows/verdict_parts.h"
#include "viz/traces/trace_plan.h"

namespace rollcall::viz {

namespace {

using Json = nlohmann::ordered_json;

void add_number(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    out += static_cast<char>((value & 0x7f) | 0x80);
  }
  out += static_cast<char>(value);
}

std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

void add_signed(std::string& out, std::int64_t value) { add_number(out, zigzag(value)); }

// Names may be anything, and the script shows them as they are, so control characters are written out here. Long names
// are cut, because a row of a canvas cannot show ten thousand characters.
constexpr std::size_t name_length_max = 400;
std::string shown(const std::string& name) { return clipped(harmless(name), name_length_max); }

// Numbers given to things in order of their first appearance.
template <typename Thing>
class Numbering {
 public:
  // Returns the thing's number, and whether it is new.
  std::pair<std::size_t, bool> of(const Thing& thing) {
    const auto [entry, is_new] = numbers_.try_emplace(thing, numbers_.size());
    return {entry->second, is_new};
  }

 private:
  std::map<Thing, std::size_t> numbers_;
};

using CallKey = std::tuple<Span::Kind, bool, Dtype, std::uint32_t, std::size_t, std::uint32_t, std::uint32_t,
                           std::int64_t, std::uint32_t>;

// Equal for spans that differ only in their times, their number and their group; `group` stands for that.
CallKey call_key(const Span& span, std::size_t group) {
  return {span.kind,  span.async_op, span.dtype, span.name,     group,
          span.label, span.site,     span.numel, span.arguments};
}

// The distinct calls, each kept once: many slices differ only in their times and their number.
class CallTable {
 public:
  explicit CallTable(const Timeline& timeline) : timeline_(timeline) {}

  std::size_t index_of(const Span& span) {
    const auto [index, is_new] = indexes_.of(call_key(span, span.group));
    if (is_new) {
      calls_.push_back(json_of(span));
    }
    return index;
  }
  Json take() { return std::move(calls_); }

 private:
  // [kind, name, group, "float32 x 4", "SUM", label, site, async]
  Json json_of(const Span& span) const {
    const std::string dtype = dtype_text(span, timeline_);
    return {
        static_cast<int>(span.kind),           shown(timeline_.name(span.name)),
        shown(timeline_.name(span.group)),     dtype.empty() ? "" : fmt::format("{} x {}", dtype, span.numel),
        shown(timeline_.name(span.arguments)), shown(timeline_.name(span.label)),
        shown(timeline_.name(span.site)),      span.async_op ? 1 : 0};
  }

  const Timeline& timeline_;
  Numbering<CallKey> indexes_;
  Json calls_ = Json::array();
};

// One rank's slices: with times, and without them, to fold ranks that did the same at other times.
struct Story {
  std::string slices;
  std::string calls;
  Json lanes = Json::array();  // [name, slices]
};

// Assigns numbers to calls; calls that differ only in the group of a family get the same number.
class FoldKeys {
 public:
  FoldKeys(const Timeline& timeline, const GroupFamilies& families)
      : timeline_(timeline), families_(families) {}

  // A lane is named after its group: "async dp3 (2)".
  std::string lane(const std::string& name) const {
    const std::size_t begin = name.starts_with("async ") ? 6 : 0;
    const std::size_t end = std::min(name.find(" (", begin), name.size());
    return name.substr(0, begin) + families_.of(name.substr(begin, end - begin)) + name.substr(end);
  }

  std::size_t of(const Span& span) {
    const auto [family, is_new] = family_of_.try_emplace(span.group, 0);
    if (is_new) {
      family->second = names_.of(families_.of(timeline_.name(span.group))).first;
    }
    return keys_.of(call_key(span, family->second)).first;
  }

 private:
  const Timeline& timeline_;
  const GroupFamilies& families_;
  std::map<std::uint32_t, std::size_t> family_of_;  // by the index of the group's name
  Numbering<std::string> names_;
  Numbering<CallKey> keys_;
};

// Adds one lane's slices, by start. Ranks of one fold may differ in times, and in their group within a family.
void add_lane(Story& story, const Timeline& timeline, const std::vector<std::uint32_t>& lane,
              CallTable& calls, FoldKeys& folds) {
  Time last_start = 0;
  std::int64_t last_seq = 0;
  for (const std::uint32_t index : lane) {
    const Span& span = timeline.spans()[index];
    std::string what;
    add_signed(what, span.seq - last_seq);
    if (span.kind == Span::Kind::message) {
      add_number(what, span.peer < 0 ? 0 : 1 + zigzag(span.peer - span.rank));
    }
    const bool is_open = span.end == Span::open;
    add_number(story.slices, static_cast<std::uint64_t>(span.start - last_start));
    add_number(story.slices, is_open ? 0 : 1 + static_cast<std::uint64_t>(span.end - span.start));
    add_number(story.slices, calls.index_of(span));
    story.slices += what;
    add_number(story.calls, folds.of(span));
    story.calls += what;
    story.calls += is_open ? '1' : '0';
    last_start = span.start;
    last_seq = span.seq;
  }
}

// Returns the chosen spans of every lane, in the lanes' order.
std::vector<std::vector<std::uint32_t>> spans_by_lane(const Timeline& timeline, const TraceLanes& lanes) {
  std::map<std::pair<Rank, LaneId>, std::size_t> indexes;
  for (std::size_t i = 0; i < lanes.lanes.size(); ++i) {
    indexes[{lanes.lanes[i].rank, lanes.lanes[i].id}] = i;
  }
  std::vector<std::vector<std::uint32_t>> result(lanes.lanes.size());
  for (const std::uint32_t index : lanes.order) {
    const Rank rank = timeline.spans()[index].rank;
    result[indexes.at({rank, lanes.lane_of[index]})].push_back(index);
  }
  return result;
}

// Leaves out empty lanes, except a rank's only lane.
std::vector<Story> stories_of(const Report& report, const TraceLanes& lanes, CallTable& calls) {
  const auto spans = spans_by_lane(report.timeline, lanes);
  const GroupFamilies families(report);
  FoldKeys folds(report.timeline, families);
  std::vector<Story> stories(static_cast<std::size_t>(report.world_size));
  for (std::size_t i = 0; i < lanes.lanes.size(); ++i) {
    const bool is_only = i + 1 == lanes.lanes.size() || lanes.lanes[i + 1].id == program_lane;
    Story& story = stories[static_cast<std::size_t>(lanes.lanes[i].rank)];
    if (spans[i].empty() && !(is_only && story.lanes.empty())) {
      continue;
    }
    story.lanes.push_back({shown(lanes.lanes[i].name), spans[i].size()});
    story.calls += folds.lane(lanes.lanes[i].name);
    story.calls += '\n';
    add_lane(story, report.timeline, spans[i], calls, folds);
  }
  return stories;
}

// The last arrival at each collective of a group.
struct Arrivals {
  std::uint32_t group = 0;                   // the index of its name
  std::map<std::int64_t, const Span*> last;  // by number; numbers may leave gaps of any size
};

// Returns the arrivals by group, in order of appearance.
std::vector<Arrivals> arrivals_of(const Timeline& timeline) {
  std::vector<Arrivals> groups;
  std::unordered_map<std::uint32_t, std::size_t> places;  // of groups
  for (const Span& span : timeline.spans()) {
    if (span.kind != Span::Kind::collective || span.seq < 0) {
      continue;
    }
    const auto [place, is_new] = places.try_emplace(span.group, groups.size());
    if (is_new) {
      groups.push_back({span.group, {}});
    }
    const Span*& last = groups[place->second].last[span.seq];
    if (last == nullptr || last->start < span.start) {
      last = &span;
    }
  }
  return groups;
}

void add_arrivals(std::string& out, const std::vector<Arrivals>& groups) {
  for (const Arrivals& arrivals : groups) {
    std::int64_t previous = 0;
    Time last = 0;
    for (const auto& [seq, span] : arrivals.last) {
      add_number(out, static_cast<std::uint64_t>(seq - previous));
      add_number(out, static_cast<std::uint64_t>(span->rank));
      add_signed(out, span->start - last);
      previous = seq;
      last = span->start;
    }
  }
}

// Returns the number of arrows written. Arrows of collectives follow from the arrivals.
std::size_t add_message_arrows(std::string& out, const TracePlan& plan, const std::vector<Span>& spans) {
  std::size_t count = 0;
  Time last = 0;
  for (const TraceArrow& arrow : plan.arrows) {
    if (spans[arrow.from].kind != Span::Kind::message) {
      continue;
    }
    for (const std::uint32_t to : arrow.to) {
      add_number(out, static_cast<std::uint64_t>(spans[arrow.from].rank));
      add_number(out, static_cast<std::uint64_t>(spans[to].rank));
      add_number(out, static_cast<std::uint64_t>(arrow.time - last));
      last = arrow.time;
      ++count;
    }
  }
  return count;
}

Json ranges_json(const RankSet& ranks) {
  Json ranges = Json::array();
  for (const RankSet::Range& range : ranks.ranges()) {
    ranges.push_back({range.first, range.last});
  }
  return ranges;
}

Json states_json(const Report& report) {
  Json list = Json::array();
  for (const RankState& state : rank_states(report, {}, 64)) {
    const std::string inputs = inputs_phrase(state.fewest_inputs, state.inputs_max);
    list.push_back({{"ranks", ranges_json(state.ranks.ranks)},
                    {"text", shown(state_phrase(state.ranks, inputs))},
                    {"culprit", state.is_culprit}});
  }
  return list;
}

// Returns when the ranks that wait at `place` began to wait; the end of the run if the timeline does not show it.
Time noticed_at(const Report& report, const std::optional<Place>& place) {
  Time first = report.simulated_time;
  for (const Span& span : report.timeline.spans()) {
    const bool waits = place && span.end == Span::open && place->waiting.contains(span.rank);
    if (waits && report.timeline.name(span.name) == place->call.op) {
      first = std::min(first, span.start);
    }
  }
  return first;
}

// Describes where the run failed: the slot, the ranks missing from it, and when the others met there. `found`: a rank
// reached it. Null if no rank did and none is missing.
Json broken_json(const Report& report, const std::vector<Arrivals>& groups) {
  const std::optional<Slot> broken_in = broken_slot(report.verdict);
  if (!broken_in) {
    return nullptr;
  }
  const auto& [name, seq] = *broken_in;
  const Finding* finding = finding_of(report.verdict);
  const bool early = finding->first_divergence.has_value();
  const RankSet missing = early ? RankSet() : finding->at->missing;
  Json broken = {{"group", shown(name)},
                 {"seq", seq},
                 {"time", noticed_at(report, finding->at)},
                 {"found", false},
                 {"missing", ranges_json(missing)},
                 {"text", early ? "" : shown("no " + owed_phrase(*finding->at))}};
  for (const Arrivals& arrivals : groups) {
    const auto slot = arrivals.last.find(seq);
    if (report.timeline.name(arrivals.group) == name && slot != arrivals.last.end()) {
      broken["time"] = slot->second->start;
      broken["found"] = true;
    }
  }
  return broken["found"] || !missing.empty() ? broken : Json(nullptr);
}

// Describes harmful statements that are not calls, and when they ran: a tensor written too early, a failed check.
Json faults_json(const Report& report) {
  Json faults = Json::array();
  if (const std::vector<TensorPlace>* places = tensors_of(report.verdict)) {
    for (const TensorPlace& place : *places) {
      if (place.time >= 0) {
        faults.push_back({{"ranks", ranges_json(place.ranks)},
                          {"time", place.time},
                          {"text", shown(tensor_phrase(place, kind_of(report.verdict)) +
                                         (place.site.empty() ? "" : " at " + place.site))}});
      }
    }
  }
  return faults;
}

// { "end": ns, "measured": false, "world": n, "calls": [...],
//   "stories": [{"fold": n, "lanes": [[name, slices], ...]}, ...], "ranks": [story of rank 0, ...],
//   "groups": [[name, arrivals], ...], "arrows": n,
//   "states": [{"ranks": [[0, 3], ...], "text": "...", "culprit": true}, ...], "broken": {...} or null,
//   "faults": [{"ranks": [[0, 3], ...], "time": ns, "text": "..."}, ...] }
class Header {
 public:
  Header(const Report& report, const TracePlan& plan) : report_(report), plan_(plan) {}

  std::string text() {
    CallTable calls(report_.timeline);
    std::string body = stories(calls);
    const std::vector<Arrivals> arrivals = arrivals_of(report_.timeline);
    Json groups = Json::array();
    for (const Arrivals& each : arrivals) {
      groups.push_back({shown(report_.timeline.name(each.group)), each.last.size()});
    }
    add_arrivals(body, arrivals);
    const std::size_t arrows = add_message_arrows(body, plan_, report_.timeline.spans());
    const Json header = {{"end", plan_.end},
                         {"measured", report_.measured},
                         {"world", report_.world_size},
                         {"calls", calls.take()},
                         {"stories", std::move(stories_)},
                         {"ranks", std::move(ranks_)},
                         {"groups", std::move(groups)},
                         {"arrows", arrows},
                         {"states", states_json(report_)},
                         {"broken", broken_json(report_, arrivals)},
                         {"faults", faults_json(report_)}};
    return header.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n" + body;
  }

 private:
  std::string stories(CallTable& calls) {
    std::string body;
    Numbering<std::string> folds;
    Numbering<std::string> distinct;
    for (Story& story : stories_of(report_, plan_.lanes, calls)) {
      const std::size_t fold = folds.of(story.calls).first;
      const auto [number, is_new] = distinct.of(std::to_string(fold) + ':' + story.slices);
      if (is_new) {
        body += story.slices;
        stories_.push_back({{"fold", fold}, {"lanes", std::move(story.lanes)}});
      }
      ranks_.push_back(number);
    }
    return body;
  }

  const Report& report_;
  const TracePlan& plan_;
  Json stories_ = Json::array();
  Json ranks_ = Json::array();
};

}  // namespace

std::string timeline_data(const Report& report) {
  const TracePlan plan = plan_trace(report, {});
  return Header(report, plan).text();
}

std::string packed_timeline(const Report& report) {
  std::ostringstream compressed;
  compressed.exceptions(std::ios::badbit);  // otherwise a stream cuts the data where an allocation fails
  GzipStream gzip(compressed);
  gzip << timeline_data(report);
  gzip.finish();
  return base64(std::move(compressed).str());
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t k = 0; k < 3; ++k) {
      three = three << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += k <= count ? digits[three >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

}  // namespace rollcall::viz
