#include "scenarios/test/timestamp.h"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string_view>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace rollcall::scenario {
namespace {

// https://reproducible-builds.org/specs/source-date-epoch
std::optional<std::time_t> fixed_date() {
  const char* text = std::getenv("SOURCE_DATE_EPOCH");
  const std::string_view digits(text == nullptr ? "" : text);
  std::time_t date = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), date);
  const bool is_number = !digits.empty() && error == std::errc() && end == digits.data() + digits.size();
  return is_number ? std::optional(date) : std::nullopt;
}

}  // namespace

std::string timestamp() {
  const std::time_t date =
      fixed_date().value_or(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()));
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}", fmt::gmtime(date));
}

bool has_fixed_date() { return fixed_date().has_value(); }

}  // namespace rollcall::scenario
