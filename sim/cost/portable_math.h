#pragma once

// exp and log that give the same bits on every machine: the standard library's differ in the last place.

#include <bit>
#include <cstdint>

namespace rollcall::cost {

inline constexpr double ln_2 = 0.693147180559945309417232121458;

// exp(x) for |x| <= 700.
constexpr double portable_exp(double x) {
  const auto halves = static_cast<int>(x / ln_2 + (x < 0 ? -0.5 : 0.5));
  const double rest = x - halves * ln_2;
  double sum = 1;
  double term = 1;
  for (int i = 1; i < 20; ++i) {
    term *= rest / i;
    sum += term;
  }
  for (int i = 0; i < halves; ++i) {
    sum *= 2;
  }
  for (int i = 0; i > halves; --i) {
    sum /= 2;
  }
  return sum;
}

// log(x) for x > 0.
constexpr double portable_log(double x) {
  int halves = 0;
  for (; x > 1.5; x /= 2) {
    ++halves;
  }
  for (; x < 0.75; x *= 2) {
    --halves;
  }
  const double ratio = (x - 1) / (x + 1);
  double sum = 0;
  double power = ratio;
  for (int i = 1; i < 40; i += 2) {
    sum += power / i;
    power *= ratio * ratio;
  }
  return 2 * sum + halves * ln_2;
}

// log2, straight between powers of two: within 0.09 of it. For bytes > 0.
constexpr double log2_of(std::int64_t bytes) {
  const int whole = std::bit_width(static_cast<std::uint64_t>(bytes)) - 1;
  const std::int64_t power = std::int64_t{1} << whole;
  return whole + static_cast<double>(bytes - power) / static_cast<double>(power);
}

}  // namespace rollcall::cost
