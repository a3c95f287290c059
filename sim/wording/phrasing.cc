#include "sim/wording/phrasing.h"

#include <fmt/core.h>

namespace rollcall::check {

bool is_plural(const RankSet& ranks) { return ranks.size() != 1; }

std::string with_verb(const RankSet& ranks, const char* singular, const char* plural) {
  return fmt::format("{} {}", ranks_phrase(ranks), is_plural(ranks) ? plural : singular);
}

std::string origin_of(const Call& call) {
  std::string text;
  if (!call.label.empty()) {
    text += fmt::format(" in {}", call.label);
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
  return call.site.empty() ? "unlabelled code" : call.site;
}

std::string elements(std::int64_t count) { return fmt::format("{} element{}", count, count == 1 ? "" : "s"); }

}  // namespace rollcall::check
