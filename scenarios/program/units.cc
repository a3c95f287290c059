#include "scenarios/program/units.h"

#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "scenarios/json/suggest.h"

namespace rollcall::scenario {
namespace {

// A unit is numerator / denominator of the base unit.
struct Unit {
  std::string_view name;
  std::int64_t numerator = 1;
  std::int64_t denominator = 1;
};

// A kind of quantity: its name, its units, and an example.
struct QuantityKind {
  std::string_view noun;
  std::string_view example;
  std::span<const Unit> units;
  std::int64_t most = INT64_MAX;
};

constexpr std::array<Unit, 8> duration_units{{{"ns", nanosecond},
                                              {"us", microsecond},
                                              {"µs", microsecond},
                                              {"ms", millisecond},
                                              {"s", second},
                                              {"m", 60 * second},
                                              {"min", 60 * second},
                                              {"h", 3600 * second}}};

constexpr std::int64_t kilo = 1000;
constexpr std::int64_t kibi = 1024;

constexpr std::array<Unit, 10> byte_units{{{"B", 1},
                                           {"kB", kilo},
                                           {"KB", kilo},
                                           {"MB", kilo* kilo},
                                           {"GB", kilo* kilo* kilo},
                                           {"TB", kilo* kilo* kilo* kilo},
                                           {"KiB", kibi},
                                           {"MiB", kibi* kibi},
                                           {"GiB", kibi* kibi* kibi},
                                           {"TiB", kibi* kibi* kibi* kibi}}};

constexpr std::array<Unit, 10> bandwidth_units{{{"bps", 1, 8},
                                                {"kbps", kilo, 8},
                                                {"Mbps", kilo* kilo, 8},
                                                {"Gbps", kilo* kilo* kilo, 8},
                                                {"Tbps", kilo* kilo* kilo* kilo, 8},
                                                {"B/s", 1},
                                                {"kB/s", kilo},
                                                {"MB/s", kilo* kilo},
                                                {"GB/s", kilo* kilo* kilo},
                                                {"TB/s", kilo* kilo* kilo* kilo}}};

// 146 years: adding a duration to a point in simulated time cannot overflow.
constexpr std::int64_t duration_max = INT64_MAX / 2;

constexpr std::array<Unit, 1> fraction_units{{{"%", 10'000}}};
constexpr std::int64_t millionths_max = 1'000'000'000;

constexpr QuantityKind duration{"duration", "5ms", duration_units, duration_max};
constexpr QuantityKind fraction{"part", "10%", fraction_units, millionths_max};
constexpr QuantityKind bytes{"size", "64MiB", byte_units};
constexpr QuantityKind bandwidth{"bandwidth", "400Gbps", bandwidth_units};

// A decimal number, exactly: digits / 10^decimals.
struct Decimal {
  std::int64_t digits = 0;
  std::int64_t scale = 1;
};

// Reads digits with at most one point; nothing if there are none, or more than fit.
std::optional<Decimal> parse_decimal(std::string_view text) {
  Decimal decimal;
  bool has_point = false;
  bool has_digit = false;
  for (char c : text) {
    if (c == '.' && !has_point) {
      has_point = true;
      continue;
    }
    if (c < '0' || c > '9' || decimal.digits > INT64_MAX / 10 - 1 || decimal.scale > INT64_MAX / 10) {
      return std::nullopt;
    }
    has_digit = true;
    decimal.digits = decimal.digits * 10 + (c - '0');
    decimal.scale *= has_point ? 10 : 1;
  }
  return has_digit ? std::optional(decimal) : std::nullopt;
}

const Unit* find_unit(const QuantityKind& kind, std::string_view name) {
  for (const Unit& unit : kind.units) {
    if (unit.name == name) {
      return &unit;
    }
  }
  return nullptr;
}

std::string unknown_unit(const QuantityKind& kind, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Unit& unit : kind.units) {
    names.push_back(unit.name);
  }
  const std::string_view meant = suggest(name, names);
  return fmt::format("\"{}\" is not a unit of {}; the units are {}{}", name, kind.noun,
                     fmt::join(names, ", "),
                     meant.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", meant));
}

// digits / scale * numerator / denominator. 128 bits hold the product of any two 64-bit numbers.
Quantity convert(const QuantityKind& kind, const Decimal& decimal, const Unit& unit) {
  __extension__ using Wide = __int128;
  const Wide product = static_cast<Wide>(decimal.digits) * unit.numerator;
  const Wide divisor = static_cast<Wide>(decimal.scale) * unit.denominator;
  const Wide value = product / divisor;
  if (value > kind.most) {
    return {{}, fmt::format("this {} is too large", kind.noun)};
  }
  if (value * divisor != product) {
    return {{}, fmt::format("this {} is too small to represent", kind.noun)};
  }
  return {static_cast<std::int64_t>(value), {}};
}

Quantity parse(const QuantityKind& kind, std::string_view text) {
  const std::size_t number_end = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::size_t unit_begin = std::min(text.find_first_not_of(' ', number_end), text.size());
  if (text.starts_with('-')) {
    return {{}, fmt::format("a {} cannot be negative", kind.noun)};
  }
  const auto decimal = parse_decimal(text.substr(0, number_end));
  if (!decimal) {
    return {{},
            fmt::format("\"{}\" is not a {}; write a number and a unit, such as \"{}\"", text, kind.noun,
                        kind.example)};
  }
  if (unit_begin == text.size()) {
    return {{}, fmt::format("a {} needs a unit, such as \"{}\"", kind.noun, kind.example)};
  }
  const std::string_view name = text.substr(unit_begin);
  const Unit* unit = find_unit(kind, name);
  return unit == nullptr ? Quantity{{}, unknown_unit(kind, name)} : convert(kind, *decimal, *unit);
}

}  // namespace

Quantity parse_duration(std::string_view text) { return parse(duration, text); }
Quantity parse_fraction(std::string_view text) { return parse(fraction, text); }
Quantity parse_bytes(std::string_view text) { return parse(bytes, text); }
Quantity parse_bandwidth(std::string_view text) { return parse(bandwidth, text); }

std::optional<double> parse_non_finite(std::string_view text) {
  if (text == "nan") {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const double infinity = std::numeric_limits<double>::infinity();
  return text == "inf" ? std::optional(infinity) : text == "-inf" ? std::optional(-infinity) : std::nullopt;
}

}  // namespace rollcall::scenario
