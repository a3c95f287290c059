#include "viz/rows/call_sequences.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "viz/rows/group_families.h"
#include "viz/rows/phrases.h"
#include "viz/rows/roles.h"
#include "viz/rows/span_text.h"
#include "viz/rows/verdict_parts.h"

namespace rollcall::viz {

namespace {

constexpr std::size_t columns_max = 6;
constexpr std::size_t rows_before = 3;
constexpr std::size_t rows_after = 10;
constexpr std::size_t window = 200;  // the number of calls after the common beginning that are compared

// The properties that make two calls equal. Numbers are left out, because one missing call shifts all that follow.
// Labels count only in the slot that is known to have paired calls that do not belong together.
using Key = std::tuple<std::uint32_t, std::uint32_t, std::int64_t, Dtype, std::uint32_t, std::int64_t,
                       std::uint32_t, std::uint32_t>;

bool is_in(const Span& span, const Timeline& timeline, const std::optional<Slot>& slot) {
  return slot && span.kind == Span::Kind::collective && span.seq == slot->seq &&
         timeline.name(span.group) == slot->group;
}

// Treats the groups of a family as one: the calls of ranks 0 and 1 on dp0 correspond to those of ranks 2 and
// 3 on dp1.
class Families {
 public:
  explicit Families(const Report& report) : families_(report), timeline_(report.timeline) {}

  const std::string& name(const Span& span) const { return families_.of(timeline_.name(span.group)); }
  const std::string& of(const std::string& group) const { return families_.of(group); }
  std::uint32_t number(const Span& span) {
    return numbers_.try_emplace(name(span), static_cast<std::uint32_t>(numbers_.size())).first->second;
  }

 private:
  GroupFamilies families_;
  const Timeline& timeline_;
  std::map<std::string, std::uint32_t> numbers_;
};

Key key_of(const Span& span, Families& families, const Roles& roles, bool with_origin) {
  return {span.name,
          families.number(span),
          span.numel,
          span.dtype,
          span.arguments,
          roles.partner(span),
          with_origin ? span.label : 0,
          with_origin ? span.site : 0};
}

// True if the span is in the slot, or in the slot with the same number on a group of the same family.
bool is_like(const Span& span, const Families& families, const std::optional<Slot>& slot) {
  return slot && span.kind == Span::Kind::collective && span.seq == slot->seq &&
         families.name(span) == families.of(slot->group);
}

// The culprits, the ranks that they wait for, and so on: culprits that wait are part of a cycle.
RankSet ranks_of_cycle(const Report& report, const RankSet& culprits) {
  RankSet known;
  RankSet next = culprits;
  while (!next.empty()) {
    known.insert(next);
    RankSet found;
    for (const RankClass& each : report.ranks) {
      if (each.ranks.meets(next)) {
        found.insert(each.waits_for);
      }
    }
    next = difference(found, known);
  }
  return known;
}

// Chooses the ranks to compare, and the groups.
class Choice {
 public:
  Choice(const Report& report, const std::optional<Slot>& slot, const Families& families, const Roles& roles)
      : families_(families) {
    const auto group = std::ranges::find(report.groups, slot ? slot->group : "", &ReportGroup::name);
    ranks_ = group == report.groups.end() ? RankSet::range(0, report.world_size - 1) : group->ranks;
    if (const Finding* finding = finding_of(report.verdict)) {
      ranks_.insert(ranks_of_cycle(report, finding->culprits));
      if (!finding->culprits.empty()) {
        ranks_ = roles.comparable(ranks_, finding->culprits);
      }
    }
    std::map<std::string, RankSet> members;  // by family
    for (const ReportGroup& each : report.groups) {
      members[families.of(each.name)].insert(each.ranks);
    }
    for (const auto& [family, all] : members) {
      if (all.contains(ranks_)) {
        common_.push_back(family);
      }
    }
  }

  const RankSet& ranks() const { return ranks_; }
  bool takes(const Span& span) const {
    const bool is_call = span.kind != Span::Kind::compute && ranks_.contains(span.rank);
    return is_call && (span.end == Span::open || is_common(families_.name(span)));
  }

 private:
  bool is_common(const std::string& family) const {
    return common_.empty() || std::ranges::find(common_, family) != common_.end();
  }

  const Families& families_;
  RankSet ranks_;
  std::vector<std::string> common_;
};

using Calls = std::vector<const Span*>;

// Returns the calls by rank, in the order in which the rank made them.
std::map<Rank, Calls> calls_by_rank(const Timeline& timeline, const Choice& choice) {
  std::map<Rank, Calls> calls;
  for (const Rank rank : choice.ranks().to_vector()) {
    calls[rank];
  }
  for (const Span& span : timeline.spans()) {
    if (choice.takes(span)) {
      calls[span.rank].push_back(&span);
    }
  }
  for (auto& [rank, own] : calls) {
    std::ranges::stable_sort(own, {}, [](const Span* span) {
      return std::tuple(span->called(), span->kind, span->group, span->seq);
    });
  }
  return calls;
}

// Ranks with equal calls. `keys` and `calls` are parallel; the calls are those of the first rank.
struct Story {
  RankSet ranks;
  bool is_culprit = false;
  std::vector<std::uint32_t> keys;
  Calls calls;
};

std::vector<Story> fold(const Report& report, const std::map<Rank, Calls>& calls,
                        const std::optional<Slot>& slot, Families& families, const Roles& roles) {
  const Finding* finding = finding_of(report.verdict);
  std::map<Key, std::uint32_t> ids;
  std::map<std::pair<bool, std::vector<std::uint32_t>>, std::size_t> indexes;  // into `stories`
  std::vector<Story> stories;
  for (const auto& [rank, own] : calls) {
    std::vector<std::uint32_t> keys;
    for (const Span* span : own) {
      const Key key = key_of(*span, families, roles, is_like(*span, families, slot));
      keys.push_back(ids.try_emplace(key, static_cast<std::uint32_t>(ids.size())).first->second);
    }
    const bool is_culprit = finding != nullptr && finding->culprits.contains(rank);
    const auto [entry, is_new] = indexes.try_emplace(std::pair(is_culprit, keys), stories.size());
    if (is_new) {
      stories.push_back({{}, is_culprit, std::move(keys), own});
    }
    stories[entry->second].ranks.insert(rank);
  }
  // The innocent ranks define what is right, however few they are.
  const bool trusts = finding != nullptr && !finding->tie;
  std::ranges::stable_sort(stories, [trusts](const Story& a, const Story& b) {
    return std::tuple(trusts && !a.is_culprit, a.ranks.size(), !a.is_culprit) >
           std::tuple(trusts && !b.is_culprit, b.ranks.size(), !b.is_culprit);
  });
  return stories;
}

// Removes columns if there are too many, but keeps the culprits'. Returns how many were removed.
std::size_t leave_out(std::vector<Story>& stories) {
  if (stories.size() <= columns_max) {
    return 0;
  }
  const std::size_t count = stories.size() - columns_max;
  std::stable_partition(stories.begin() + 1, stories.end(),
                        [](const Story& each) { return each.is_culprit; });
  stories.resize(columns_max);
  return count;
}

std::size_t common_beginning(const std::vector<Story>& stories) {
  std::size_t length = stories.front().keys.size();
  for (const Story& story : stories) {
    const auto [end, other] = std::ranges::mismatch(stories.front().keys, story.keys);
    length = std::min(length, static_cast<std::size_t>(end - stories.front().keys.begin()));
  }
  return length;
}

// The index of the story's call in the slot; the number of its calls if it makes none.
std::size_t index_of(const Story& story, const Timeline& timeline, const std::optional<Slot>& slot) {
  const auto call =
      std::ranges::find_if(story.calls, [&](const Span* span) { return is_in(*span, timeline, slot); });
  return static_cast<std::size_t>(call - story.calls.begin());
}

// For each call of `other`, the index in `base` of the call that it pairs with, ascending; or empty. Computes a
// longest common subsequence, from the back, so that equal calls pair as early as possible.
std::vector<std::optional<std::size_t>> aligned(const std::vector<std::uint32_t>& base,
                                                const std::vector<std::uint32_t>& other) {
  std::vector<std::vector<std::uint32_t>> common(base.size() + 1,
                                                 std::vector<std::uint32_t>(other.size() + 1, 0));
  for (std::size_t i = base.size(); i-- > 0;) {
    for (std::size_t j = other.size(); j-- > 0;) {
      common[i][j] =
          base[i] == other[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  std::vector<std::optional<std::size_t>> result(other.size());
  for (std::size_t i = 0, j = 0; i < base.size() && j < other.size();) {
    if (base[i] == other[j]) {
      result[j++] = i++;
    } else {
      common[i + 1][j] >= common[i][j + 1] ? ++i : ++j;
    }
  }
  return result;
}

std::vector<std::uint32_t> part_of(const Story& story, std::size_t begin) {
  const std::size_t from = std::min(begin, story.keys.size());
  const std::size_t to = std::min(from + window, story.keys.size());
  return {story.keys.begin() + static_cast<std::ptrdiff_t>(from),
          story.keys.begin() + static_cast<std::ptrdiff_t>(to)};
}

// The place of one call: in the row of the first story's call `base`, or in one of the rows before it that
// only other stories need.
struct Standing {
  std::size_t base = 0;
  std::optional<std::size_t> extra;
};

// Calls that pair are put next to their partner; the calls between them are put next to the first story's other calls,
// as far as there are any.
std::vector<Standing> standings(const std::vector<std::optional<std::size_t>>& partners, std::size_t size) {
  std::vector<Standing> result(partners.size());
  std::size_t free_from = 0;  // the first base row after the last partner
  for (std::size_t i = 0; i < partners.size();) {
    const auto next = std::find_if(partners.begin() + static_cast<std::ptrdiff_t>(i), partners.end(),
                                   [](const auto& partner) { return partner.has_value(); });
    const std::size_t end = static_cast<std::size_t>(next - partners.begin());
    const std::size_t limit = next == partners.end() ? size : **next;
    for (std::size_t k = 0; i + k < end; ++k) {
      const bool fits = free_from + k < limit;
      result[i + k] = fits ? Standing{free_from + k, {}} : Standing{limit, free_from + k - limit};
    }
    if (end < partners.size()) {
      result[end] = {limit, {}};
    }
    free_from = limit + 1;
    i = end + 1;
  }
  return result;
}

// Row r of a column is the index of the call in that place, or empty.
using Rows = std::vector<std::vector<std::optional<std::size_t>>>;

// Aligns all stories from their call `begin` on.
Rows align(const std::vector<Story>& stories, std::size_t begin) {
  const std::vector<std::uint32_t> base = part_of(stories.front(), begin);
  std::vector<std::vector<Standing>> all;
  std::vector<std::size_t> extras(base.size() + 1,
                                  0);  // extra rows before each base row, and after the last
  for (const Story& story : stories) {
    all.push_back(standings(aligned(base, part_of(story, begin)), base.size()));
    for (const Standing& each : all.back()) {
      extras[each.base] = std::max(extras[each.base], each.extra ? *each.extra + 1 : 0);
    }
  }
  std::vector<std::size_t> start(base.size() + 1, 0);  // the first of each base row's extra rows
  for (std::size_t i = 0; i < base.size(); ++i) {
    start[i + 1] = start[i] + extras[i] + 1;
  }
  Rows columns(stories.size(), std::vector<std::optional<std::size_t>>(start.back() + extras.back()));
  for (std::size_t column = 0; column < stories.size(); ++column) {
    for (std::size_t i = 0; i < all[column].size(); ++i) {
      const Standing& at = all[column][i];
      columns[column][start[at.base] + at.extra.value_or(extras[at.base])] = begin + i;
    }
  }
  return columns;
}

bool row_differs(const std::vector<Story>& stories, const Rows& columns, std::size_t row,
                 std::size_t column) {
  const auto& own = columns[column][row];
  const auto& usual = columns.front()[row];
  if (!own || !usual) {
    return own.has_value() != usual.has_value();
  }
  return stories[column].keys[*own] != stories.front().keys[*usual];
}

void fill(CallSequences& result, const std::vector<Story>& stories, const Rows& columns,
          const Timeline& timeline, const Families& families) {
  const bool has_culprits = std::ranges::any_of(stories, &Story::is_culprit);
  for (std::size_t column = 0; column < stories.size(); ++column) {
    CallSequences::Column shown{stories[column].ranks, stories[column].is_culprit, {}};
    for (std::size_t row = 0; row < result.rows; ++row) {
      const auto& index = columns[column][row];
      const Span* const span = index ? stories[column].calls[*index] : nullptr;
      shown.cells.push_back(CallSequences::cell_of(span, timeline));
      // Several ranks may have made the call on different groups of a family.
      if (span != nullptr && shown.ranks.size() > 1) {
        shown.cells.back().call = call_text(*span, timeline, families.name(*span));
      }
      shown.cells.back().differs = row_differs(stories, columns, row, column);
      const bool counts = shown.is_culprit || !has_culprits;
      if (counts && shown.cells.back().differs && row < result.first_difference.value_or(result.rows)) {
        result.first_difference = row;
      }
    }
    result.columns.push_back(std::move(shown));
  }
}

}  // namespace

CallSequences::Cell CallSequences::cell_of(const Span* span, const Timeline& timeline) {
  if (span == nullptr) {
    return {};
  }
  return {.call = call_text(*span, timeline),
          .origin = origin_text(*span, timeline),
          .never_returned = span->end == Span::open};
}

CallSequences call_sequences(const Report& report) {
  const std::optional<Slot> slot = broken_slot(report.verdict);
  if (report.timeline.spans().empty()) {
    return {};
  }
  Families families(report);
  const Roles roles(report);
  const Choice choice(report, slot, families, roles);
  if (choice.ranks().empty()) {
    return {};
  }
  std::vector<Story> stories = fold(report, calls_by_rank(report.timeline, choice), slot, families, roles);
  CallSequences result;
  result.columns_left_out = leave_out(stories);
  const std::size_t parting =
      std::min(common_beginning(stories), index_of(stories.front(), report.timeline, slot));
  result.earlier = parting - std::min(parting, rows_before);
  const Rows columns = align(stories, result.earlier);
  result.rows = std::min(columns.front().size(), rows_before + rows_after);
  result.later = columns.front().size() - result.rows;
  fill(result, stories, columns, report.timeline, families);
  return result;
}

}  // namespace rollcall::viz
