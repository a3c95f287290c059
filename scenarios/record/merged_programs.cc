#include "scenarios/record/merged_programs.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rollcall::scenario {
namespace {

// Longer programs that differ are too long to compare side by side.
constexpr std::size_t list_max = 2000;

// A statement of some ranks. For a loop: the number of iterations of each rank, and its body.
struct Item {
  RankSet ranks;
  OrderedJson statement;
  std::map<Rank, std::int64_t> turns{};
  std::vector<Item> body{};

  bool is_loop() const { return !turns.empty(); }
};
using Items = std::vector<Item>;

Items items_of(const std::vector<OrderedJson>& statements, const RankSet& ranks) {
  Items items;
  for (const OrderedJson& statement : statements) {
    Item& item = items.emplace_back(Item{ranks, statement});
    if (statement.contains("repeat")) {
      for (const Rank rank : ranks.to_vector()) {
        item.turns[rank] = statement.at("repeat").get<std::int64_t>();
      }
      item.body = items_of(statement.at("do").get<std::vector<OrderedJson>>(), ranks);
      item.statement = nullptr;
    }
  }
  return items;
}

bool has_same_body(const Item& a, const Item& b);

bool is_same(const Item& a, const Item& b) {
  return a.is_loop() == b.is_loop() &&
         (a.is_loop() ? has_same_body(a, b) && a.turns.begin()->second == b.turns.begin()->second
                      : a.statement == b.statement);
}

bool has_same_body(const Item& a, const Item& b) { return std::ranges::equal(a.body, b.body, is_same); }

// How desirable it is to merge the two; 0: they do not match.
int affinity(const Item& a, const Item& b) {
  if (a.is_loop() != b.is_loop()) {
    return 0;
  }
  if (!a.is_loop()) {
    return a.statement == b.statement ? 2 : 0;
  }
  if (has_same_body(a, b)) {
    return 4;
  }
  // Bodies that differ in parts: an equal number of iterations shows that they belong together.
  return a.turns.begin()->second == b.turns.begin()->second && a.turns.begin()->second > 1 ? 1 : 0;
}

Items merge(Items a, Items b);

Item merge_items(Item a, Item b) {
  a.ranks.insert(b.ranks);
  if (a.is_loop()) {
    a.turns.merge(b.turns);
    a.body = merge(std::move(a.body), std::move(b.body));
  }
  return a;
}

// The alignment with the greatest sum of affinities: gain[i][j] is that of the rest of a from i and of b from j.
std::vector<std::vector<int>> gains(const Items& a, const Items& b) {
  std::vector<std::vector<int>> gain(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (std::size_t i = a.size(); i-- > 0;) {
    for (std::size_t j = b.size(); j-- > 0;) {
      const int together = affinity(a[i], b[j]);
      gain[i][j] =
          std::max({gain[i + 1][j], gain[i][j + 1], together == 0 ? 0 : together + gain[i + 1][j + 1]});
    }
  }
  return gain;
}

Items merge(Items a, Items b) {
  const std::vector<std::vector<int>> gain = gains(a, b);
  Items merged;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const int together = affinity(a[i], b[j]);
    if (together > 0 && gain[i][j] == together + gain[i + 1][j + 1]) {
      merged.push_back(merge_items(std::move(a[i++]), std::move(b[j++])));
    } else if (gain[i][j] == gain[i + 1][j]) {
      merged.push_back(std::move(a[i++]));
    } else {
      merged.push_back(std::move(b[j++]));
    }
  }
  std::move(a.begin() + static_cast<std::ptrdiff_t>(i), a.end(), std::back_inserter(merged));
  std::move(b.begin() + static_cast<std::ptrdiff_t>(j), b.end(), std::back_inserter(merged));
  return merged;
}

std::string condition(const RankSet& ranks, const RankSet& among) {
  std::vector<std::string> parts;
  for (const RankSet::Range& range : ranks.ranges()) {
    if (range.first == range.last) {
      parts.push_back(fmt::format("rank == {}", range.first));
    } else if (range.first == among.first()) {
      parts.push_back(fmt::format("rank <= {}", range.last));
    } else if (range.last == among.ranges().back().last) {
      parts.push_back(fmt::format("rank >= {}", range.first));
    } else {
      parts.push_back(fmt::format("rank >= {} && rank <= {}", range.first, range.last));
    }
  }
  return fmt::format("{}", fmt::join(parts, " || "));
}

bool varies(const Item& item) {
  return std::ranges::any_of(item.turns,
                             [&](const auto& turn) { return turn.second != item.turns.begin()->second; });
}

// "rank == 0 ? 5 : 6"
std::string turns_expression(const Item& item) {
  std::map<std::int64_t, RankSet> ranks_of;
  for (const auto& [rank, turns] : item.turns) {
    ranks_of[turns].insert(rank);
  }
  const auto most =
      std::ranges::max_element(ranks_of, {}, [](const auto& entry) { return entry.second.size(); });
  std::string text;
  for (const auto& [turns, ranks] : ranks_of) {
    if (turns != most->first) {
      text += fmt::format("{} ? {} : ", condition(ranks, item.ranks), turns);
    }
  }
  return text + std::to_string(most->first);
}

void add_conditional(std::vector<OrderedJson>& statements, const RankSet& ranks, const RankSet& among,
                     std::vector<OrderedJson> part) {
  const RankSet others = difference(among, ranks);
  const bool completes = !statements.empty() && statements.back().contains("if") &&
                         !statements.back().contains("else") &&
                         statements.back().at("if") == condition(others, among);
  if (completes) {
    statements.back()["else"] = std::move(part);
  } else {
    statements.push_back({{"if", condition(ranks, among)}, {"do", std::move(part)}});
  }
}

std::vector<OrderedJson> write_items(const Items& items, const RankSet& among);

OrderedJson write_item(const Item& item) {
  if (!item.is_loop()) {
    return item.statement;
  }
  std::vector<OrderedJson> body = write_items(item.body, item.ranks);
  if (varies(item)) {
    return {{"repeat", turns_expression(item)}, {"do", std::move(body)}};
  }
  return {{"repeat", item.turns.begin()->second}, {"do", std::move(body)}};
}

std::vector<OrderedJson> write_items(const Items& items, const RankSet& among) {
  std::vector<OrderedJson> statements;
  for (std::size_t begin = 0; begin < items.size();) {
    const RankSet& ranks = items[begin].ranks;
    std::size_t end = begin;
    std::vector<OrderedJson> part;
    for (; end < items.size() && items[end].ranks == ranks; ++end) {
      part.push_back(write_item(items[end]));
    }
    if (ranks == among) {
      std::ranges::move(part, std::back_inserter(statements));
    } else {
      add_conditional(statements, ranks, among, std::move(part));
    }
    begin = end;
  }
  return statements;
}

}  // namespace

std::vector<OrderedJson> merge_programs(const std::vector<RankProgram>& programs) {
  RankSet everybody;
  Items merged;
  for (const RankProgram& program : programs) {
    everybody.insert(program.ranks);
    Items items = items_of(program.statements, program.ranks);
    if (merged.size() <= list_max && items.size() <= list_max) {
      merged = merge(std::move(merged), std::move(items));
    } else {
      std::ranges::move(items, std::back_inserter(merged));
    }
  }
  return write_items(merged, everybody);
}

}  // namespace rollcall::scenario
