#include "traces/logs/lines.h"

#include <algorithm>
#include <charconv>

#include "traces/values/value_access.h"

namespace rollcall::traces {

std::optional<std::int64_t> number_at(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> number_after(std::string_view line, std::string_view word) {
  const std::size_t place = line.find(word);
  return place == std::string_view::npos ? std::nullopt : number_at(line.substr(place + word.size()));
}

std::optional<Rank> rank_at(std::string_view text) {
  const std::optional<std::int64_t> number = number_at(text);
  return number && *number >= 0 && *number < ranks_max ? std::optional(static_cast<Rank>(*number))
                                                       : std::nullopt;
}

std::optional<Rank> rank_after(std::string_view line, std::string_view word) {
  const std::size_t place = line.find(word);
  return place == std::string_view::npos ? std::nullopt : rank_at(line.substr(place + word.size()));
}

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = std::min(text.find_first_not_of(" \t\r"), text.size());
  text.remove_prefix(first);
  const std::size_t last = text.find_last_not_of(" \t\r");
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

}  // namespace rollcall::traces
