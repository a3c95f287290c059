#include "tests/stand_in/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tests/stand_in/rules.h"

namespace rollcall::stand_in {
namespace {

// A 16-bit floating-point type with the given width of its exponent, which computes in float.
template <int ExponentBits>
struct Half {
  static constexpr int mantissa_bits = 15 - ExponentBits;
  static constexpr int bias = (1 << (ExponentBits - 1)) - 1;
  std::uint16_t bits = 0;

  Half() = default;
  // Rounds to nearest, ties to even.
  explicit Half(float value) {
    const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
    const float size = std::fabs(value);
    constexpr int top = (1 << ExponentBits) - 1;
    if (std::isnan(value)) {
      bits = static_cast<std::uint16_t>(sign | (top << mantissa_bits) | (1 << (mantissa_bits - 1)));
      return;
    }
    int exponent = 0;
    std::frexp(size, &exponent);  // size = f * 2^exponent, f in [0.5, 1)
    const int least = std::max(exponent - 1, 1 - bias);
    const double steps = std::nearbyint(std::ldexp(static_cast<double>(size), mantissa_bits - least));
    const double rounded = std::ldexp(steps, least - mantissa_bits);
    if (std::isinf(size) || rounded >= std::ldexp(2.0, bias)) {
      bits = static_cast<std::uint16_t>(sign | (top << mantissa_bits));
      return;
    }
    const auto whole = static_cast<std::uint32_t>(steps);
    const int field = least + bias;  // the exponent field, unless the number is subnormal
    const std::uint32_t hidden = 1U << mantissa_bits;
    const std::uint32_t encoded =
        whole < hidden ? whole : (static_cast<std::uint32_t>(field) << mantissa_bits) + (whole - hidden);
    bits = static_cast<std::uint16_t>(sign | encoded);
  }
  explicit operator float() const {
    const int field = (bits >> mantissa_bits) & ((1 << ExponentBits) - 1);
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    float value = 0;
    if (field == (1 << ExponentBits) - 1) {
      value = mantissa == 0 ? INFINITY : NAN;
    } else {
      const int whole = field == 0 ? mantissa : mantissa + (1 << mantissa_bits);
      value = std::ldexp(static_cast<float>(whole), std::max(field, 1) - bias - mantissa_bits);
    }
    return (bits & 0x8000) != 0 ? -value : value;
  }
};

template <typename T>
T step(ncclRedOp_t op, T a, T b) {
  switch (op) {
    case ncclProd:
      return static_cast<T>(a * b);
    case ncclMax:
      return std::max(a, b);
    case ncclMin:
      return std::min(a, b);
    default:
      return static_cast<T>(a + b);
  }
}

// Integers wrap.
template <typename T>
T combine(ncclRedOp_t op, T a, T b) {
  if constexpr (std::is_arithmetic_v<T>) {
    if constexpr (std::is_integral_v<T>) {
      if (op != ncclMax && op != ncclMin) {
        using Wide = std::uint64_t;
        const auto x = static_cast<Wide>(a);
        const auto y = static_cast<Wide>(b);
        return static_cast<T>(op == ncclProd ? x * y : x + y);
      }
    }
    return step(op, a, b);
  } else {
    return T(step(op, static_cast<float>(a), static_cast<float>(b)));
  }
}

template <typename T>
T scaled(T value, double factor) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(value * static_cast<T>(factor));
  } else {
    return T(static_cast<float>(value) * static_cast<float>(T(static_cast<float>(factor))));
  }
}

template <typename T>
T averaged(T total, std::size_t ranks) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(total / static_cast<T>(ranks));
  } else {
    return T(static_cast<float>(total) / static_cast<float>(ranks));
  }
}

template <typename T>
void reduce_as(ncclRedOp_t op, bool scales, const std::vector<Summand>& from, std::byte* into,
               std::size_t count) {
  const auto value = [&](const Summand& summand, std::size_t i) {
    T element;
    std::memcpy(&element, summand.values + i * sizeof(T), sizeof(T));
    return scales ? scaled(element, summand.factor) : element;
  };
  for (std::size_t i = 0; i < count; ++i) {
    T total = value(from.front(), i);
    for (std::size_t rank = 1; rank < from.size(); ++rank) {
      total = combine(scales ? ncclSum : op, total, value(from[rank], i));
    }
    if (op == ncclAvg) {
      total = averaged(total, from.size());
    }
    std::memcpy(into + i * sizeof(T), &total, sizeof(T));
  }
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

double to_number(ncclDataType_t type, const std::byte* element) {
  Half<5> half;
  Half<8> brain;
  std::memcpy(&half, element, sizeof half);
  std::memcpy(&brain, element, sizeof brain);
  return type == ncclFloat16 ? static_cast<float>(half) : static_cast<float>(brain);
}

void reduce(ncclDataType_t type, ncclRedOp_t op, bool scales, const std::vector<Summand>& from,
            std::byte* into, std::size_t count) {
  switch (type) {
    case ncclInt8:
      return reduce_as<std::int8_t>(op, scales, from, into, count);
    case ncclUint8:
      return reduce_as<std::uint8_t>(op, scales, from, into, count);
    case ncclInt32:
      return reduce_as<std::int32_t>(op, scales, from, into, count);
    case ncclUint32:
      return reduce_as<std::uint32_t>(op, scales, from, into, count);
    case ncclInt64:
      return reduce_as<std::int64_t>(op, scales, from, into, count);
    case ncclUint64:
      return reduce_as<std::uint64_t>(op, scales, from, into, count);
    case ncclFloat16:
      return reduce_as<Half<5>>(op, scales, from, into, count);
    case ncclBfloat16:
      return reduce_as<Half<8>>(op, scales, from, into, count);
    case ncclFloat32:
      return reduce_as<float>(op, scales, from, into, count);
    case ncclFloat64:
      return reduce_as<double>(op, scales, from, into, count);
    default:
      break_off("a type was reduced that the stand-in does not know");
  }
}

}  // namespace rollcall::stand_in
