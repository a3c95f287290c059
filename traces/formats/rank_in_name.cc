#include "traces/formats/rank_in_name.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "sim/base/ascii.h"
#include "traces/values/value_access.h"

namespace rollcall::traces {

namespace {

constexpr std::array<std::string_view, 7> suffixes = {".gz", ".json", ".pickle", ".pkl",
                                                      ".pt", ".et",   ".trace"};

std::string_view stem_of(std::string_view path) {
  std::string_view name = path.substr(path.find_last_of('/') + 1);
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view suffix : suffixes) {
      if (name.ends_with(suffix)) {
        name.remove_suffix(suffix.size());
        found = true;
      }
    }
  }
  return name;
}

// All numbers in the name, the last one first. Leaves out numbers too long for a rank (dates).
std::vector<Rank> numbers_in(std::string_view name) {
  std::vector<Rank> numbers;
  std::size_t end = name.size();
  while (end > 0) {
    std::size_t begin = end;
    while (begin > 0 && is_digit(name[begin - 1])) {
      --begin;
    }
    Rank number = 0;
    if (begin < end && std::from_chars(name.data() + begin, name.data() + end, number).ec == std::errc() &&
        number < ranks_max) {
      numbers.push_back(number);
    }
    end = begin < end ? begin : end - 1;
  }
  return numbers;
}

// The number behind the last "rank", "rank_", "rank-" or "rank=": "rank_3_attempt_0" and "rank_0.log.1" are named by
// it.
std::optional<Rank> number_after_word(std::string_view name) {
  constexpr std::string_view word = "rank";
  for (std::size_t place = name.rfind(word); place != std::string_view::npos;
       place = place == 0 ? std::string_view::npos : name.rfind(word, place - 1)) {
    std::string_view rest = name.substr(place + word.size());
    rest.remove_prefix(
        !rest.empty() && std::string_view("_-=.").find(rest.front()) != std::string_view::npos ? 1 : 0);
    const std::string_view digits = rest.substr(0, rest.find_first_not_of("0123456789"));
    if (const std::vector<Rank> numbers = numbers_in(digits); !numbers.empty()) {
      return numbers.front();
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Rank> rank_in_name(std::string_view path, const std::vector<check::DumpGroup>& groups) {
  const std::string_view name = stem_of(path);
  if (const std::optional<Rank> rank = number_after_word(name)) {
    return rank;
  }
  const std::vector<Rank> numbers = numbers_in(name.substr(0, name.rfind("-of-")));
  const auto is_member = [&groups](Rank rank) {
    return std::all_of(groups.begin(), groups.end(), [rank](const check::DumpGroup& group) {
      return group.members.empty() || std::binary_search(group.members.begin(), group.members.end(), rank);
    });
  };
  const auto fitting = std::find_if(numbers.begin(), numbers.end(), is_member);
  if (fitting != numbers.end()) {
    return *fitting;
  }
  return numbers.empty() ? std::nullopt : std::optional(numbers.front());
}

}  // namespace rollcall::traces
