#include "sim/c10d/warnings.h"

#include <algorithm>

#include "sim/c10d/observer.h"
#include "sim/c10d/rank_context.h"

namespace rollcall {

bool WarningFilter::admits(std::string_view text) {
  if (std::ranges::find(shown_, text) != shown_.end()) {
    return false;
  }
  shown_.emplace_back(text);
  return true;
}

void WarningFilter::switch_to_once() {
  if (!once_) {
    once_ = true;
    shown_.clear();
  }
}

WarningFilter& warning_filter() {
  std::unique_ptr<WarningFilter>& filter = this_rank().warnings;
  if (filter == nullptr) {
    filter = std::make_unique<WarningFilter>();
  }
  return *filter;
}

void warn(std::string_view text) {
  if (warning_filter().admits(text)) {
    this_rank().backend->observer().warn(text);
  }
}

}  // namespace rollcall
