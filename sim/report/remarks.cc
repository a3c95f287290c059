#include "sim/report/remarks.h"

#include <algorithm>

#include <fmt/core.h>

namespace rollcall {

std::string slowed_text(Duration took, Duration alone, std::string_view because) {
  const std::int64_t hundredths = took * 100 / std::max<Duration>(1, alone);
  if (because.empty() || hundredths <= 100) {
    return {};
  }
  return fmt::format("{}.{:02}{}, {}", hundredths / 100, hundredths % 100, slowed_mark, because);
}

}  // namespace rollcall
