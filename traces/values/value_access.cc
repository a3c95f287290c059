#include "traces/values/value_access.h"

#include <algorithm>
#include <charconv>

#include "sim/base/parse_number.h"

namespace rollcall::traces {

std::int64_t number_or(const Value* value, std::int64_t otherwise) {
  if (value == nullptr) {
    return otherwise;
  }
  if (value->is(Value::Kind::integer) || value->is(Value::Kind::boolean)) {
    return value->integer;
  }
  return value->is(Value::Kind::text) ? parse_number<std::int64_t>(value->as_text()).value_or(otherwise)
                                      : otherwise;
}

std::string_view text_or_empty(const Value* value) {
  return value != nullptr && value->is(Value::Kind::text) ? value->as_text() : std::string_view();
}

std::span<const Value> items_of(const Value* value) {
  if (value == nullptr || !value->is(Value::Kind::list)) {
    return {};
  }
  return {value->node->items, value->node->size};
}

std::int64_t count_or(const Value* value, std::int64_t otherwise) {
  constexpr std::int64_t count_max = std::int64_t{1} << 62;
  const std::int64_t number = number_or(value, otherwise);
  return number >= 0 && number < count_max ? number : otherwise;
}

double real_or(const Value* value, double otherwise) {
  if (value != nullptr && value->is(Value::Kind::real)) {
    return value->real;
  }
  return value != nullptr && value->is(Value::Kind::integer) ? static_cast<double>(value->integer)
                                                             : otherwise;
}

float duration_or_none(double milliseconds) {
  constexpr double most = 1e12;  // 31 years
  return milliseconds >= 0 && milliseconds < most ? static_cast<float>(milliseconds) : -1;
}

std::vector<std::int64_t> counts_of(const Value* value) {
  std::vector<std::int64_t> counts;
  for (const Value& item : items_of(value)) {
    counts.push_back(count_or(&item, 0));
  }
  return counts;
}

std::vector<std::vector<std::int64_t>> shapes_of(const Value* value) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (const Value& item : items_of(value)) {
    shapes.push_back(counts_of(&item));
  }
  return shapes;
}

std::vector<std::string> texts_of(const Value* value) {
  std::vector<std::string> texts;
  for (const Value& item : items_of(value)) {
    texts.emplace_back(text_or_empty(&item));
  }
  return texts;
}

std::optional<std::vector<Rank>> parse_ranks(std::string_view text) {
  std::vector<Rank> ranks;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto skip = [&](std::string_view allowed) {
    while (at != end && allowed.find(*at) != std::string_view::npos) {
      ++at;
    }
  };
  skip(" [");
  while (at != end && *at != ']') {
    Rank rank = -1;
    const auto [next, error] = std::from_chars(at, end, rank);
    if (error != std::errc() || rank < 0 || rank >= ranks_max) {
      return std::nullopt;
    }
    ranks.push_back(rank);
    at = next;
    skip(" ,");
  }
  return ranks;
}

std::vector<Rank> members_of(const Value* value) {
  std::vector<Rank> members;
  if (const std::string_view text = text_or_empty(value); !text.empty()) {
    members = parse_ranks(text).value_or(std::vector<Rank>());
  }
  for (const Value& item : items_of(value)) {
    if (const std::int64_t rank = number_or(&item, -1); rank >= 0 && rank < ranks_max) {
      members.push_back(static_cast<Rank>(rank));
    }
  }
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  return members;
}

}  // namespace rollcall::traces
