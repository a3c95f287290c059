#include "scenarios/program/rank_sets.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include <fmt/core.h>

namespace rollcall::scenario {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  const std::size_t end = text.find_last_not_of(' ') + 1;  // npos + 1 is 0
  return text.substr(begin, std::max(begin, end) - begin);
}

std::optional<std::int64_t> parse_rank(std::string_view text) {
  std::int64_t rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error == std::errc::result_out_of_range) {
    return INT64_MAX;
  }
  return error == std::errc() && end == text.data() + text.size() ? std::optional(rank) : std::nullopt;
}

std::string out_of_range(std::int64_t rank, Rank world_size) {
  return world_size == 1 ? fmt::format("rank {} is out of range: a world of 1 has only rank 0", rank)
                         : fmt::format("rank {} is out of range: ranks are 0 to {}", rank, world_size - 1);
}

bool is_rank(std::int64_t rank, Rank world_size) { return rank >= 0 && rank < world_size; }

// "8" or "0-3".
Parsed<RankSet::Range> parse_range(std::string_view part, Rank world_size) {
  const std::size_t dash = part.find('-', 1);
  const auto first = parse_rank(trimmed(part.substr(0, dash)));
  const auto last = dash == std::string_view::npos ? first : parse_rank(trimmed(part.substr(dash + 1)));
  if (!first || !last) {
    return {
        {},
        fmt::format("\"{}\" is not a rank or a range of ranks; a rank set is written like \"0-3,8\"", part)};
  }
  for (std::int64_t rank : {*first, *last}) {
    if (!is_rank(rank, world_size)) {
      return {{}, out_of_range(rank, world_size)};
    }
  }
  if (*first > *last) {
    return {{}, fmt::format("the range {}-{} is backwards", *first, *last)};
  }
  return {RankSet::Range{static_cast<Rank>(*first), static_cast<Rank>(*last)}, {}};
}

// Sorts the ranges and makes a set of them, unless two overlap.
Parsed<RankSet> join_ranges(std::vector<RankSet::Range> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const RankSet::Range& a, const RankSet::Range& b) { return a.first < b.first; });
  RankSet set;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (i > 0 && ranges[i].first <= ranges[i - 1].last) {
      return {{}, fmt::format("rank {} is named twice", ranges[i].first)};
    }
  }
  // Built from the end of one range to the next, so that a range of a million ranks takes one step.
  for (const RankSet::Range& range : ranges) {
    if (range.first == range.last) {
      set.insert(range.first);
    } else {
      set.insert(RankSet::range(range.first, range.last));
    }
  }
  return {std::move(set), {}};
}

}  // namespace

Parsed<RankSet> parse_ranks(std::string_view text, Rank world_size) {
  std::vector<RankSet::Range> ranges;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const Parsed<RankSet::Range> parsed = parse_range(trimmed(text.substr(begin, comma - begin)), world_size);
    if (!parsed.value) {
      return {{}, parsed.problem};
    }
    ranges.push_back(*parsed.value);
    begin = comma + 1;
  }
  return join_ranges(std::move(ranges));
}

namespace {

// Reads one rank of a list; reports an error and returns nothing if it is not a rank.
std::optional<Rank> read_rank(const Json& value, Rank world_size, Diagnostics& diagnostics) {
  if (!value.is(JsonType::integer)) {
    diagnostics.error(value, fmt::format("expected a rank, found {}", to_phrase(value.type())));
    return std::nullopt;
  }
  if (!is_rank(value.integer(), world_size)) {
    diagnostics.error(value, out_of_range(value.integer(), world_size));
    return std::nullopt;
  }
  return static_cast<Rank>(value.integer());
}

}  // namespace

std::optional<RankSet> read_ranks(const Json& value, Rank world_size, Diagnostics& diagnostics) {
  std::vector<RankSet::Range> ranges;
  if (value.is(JsonType::array)) {
    bool all_good = true;
    for (Json element : value.children()) {
      const auto rank = read_rank(element, world_size, diagnostics);
      all_good = all_good && rank.has_value();
      ranges.push_back({rank.value_or(0), rank.value_or(0)});
    }
    if (!all_good) {
      return std::nullopt;
    }
  } else if (!value.is(JsonType::string)) {
    const auto rank = read_rank(value, world_size, diagnostics);
    return rank ? std::optional(RankSet{*rank}) : std::nullopt;
  }
  return diagnostics.value_of(
      value, value.is(JsonType::string) ? parse_ranks(value.text(), world_size) : join_ranges(ranges));
}

std::optional<RankSet> read_key_ranks(const Json& member, Rank world_size, Diagnostics& diagnostics) {
  Parsed<RankSet> parsed = parse_ranks(member.key(), world_size);
  if (!parsed.value) {
    diagnostics.error_at_key(member, parsed.problem);
  }
  return std::move(parsed.value);
}

}  // namespace rollcall::scenario
