#include "sim/wording/phrasing.h"

#include <algorithm>

#include <fmt/core.h>

namespace rollcall::check {
namespace {

// "in data at train.py:9" reads as if it were about data: a label that could be words of the sentence is quoted.
bool reads_as_words(std::string_view label) {
  return std::ranges::all_of(label, [](char c) { return (c >= 'a' && c <= 'z') || c == ' '; });
}

}  // namespace

bool is_plural(const RankSet& ranks) { return ranks.size() != 1; }

std::string with_verb(const RankSet& ranks, const char* singular, const char* plural) {
  return fmt::format("{} {}", ranks_phrase(ranks), is_plural(ranks) ? plural : singular);
}

std::string origin_of(const Call& call) {
  std::string text;
  if (const std::string_view label = label_beside_site(call.label, call.site); !label.empty()) {
    text += reads_as_words(label) ? fmt::format(" in '{}'", label) : fmt::format(" in {}", label);
  }
  if (!call.site.empty()) {
    text += fmt::format(" at {}", call.site);
  }
  return text;
}

std::string place_name(const Call& call) {
  if (!call.label.empty()) {
    return fmt::format("'{}'", call.label);
  }
  return call.site.empty() ? "unlabeled code" : call.site;
}

std::string elements(std::int64_t count) { return fmt::format("{} element{}", count, count == 1 ? "" : "s"); }

}  // namespace rollcall::check
