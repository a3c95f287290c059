#include "sim/tensor/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

#include "sim/base/ascii.h"
#include "sim/base/expects.h"

namespace rollcall {
namespace {

struct DtypeInfo {
  std::string_view name;
  std::string_view scalar_type;
  std::uint8_t size;
  bool floating;
};

constexpr std::array<DtypeInfo, dtype_count> dtypes{{
    {"float32", "Float", 4, true},
    {"float64", "Double", 8, true},
    {"float16", "Half", 2, true},
    {"bfloat16", "BFloat16", 2, true},
    {"int8", "Char", 1, false},
    {"int16", "Short", 2, false},
    {"int32", "Int", 4, false},
    {"int64", "Long", 8, false},
    {"uint8", "Byte", 1, false},
    {"bool", "Bool", 1, false},
    {"complex64", "ComplexFloat", 8, false},
    {"complex128", "ComplexDouble", 16, false},
}};

constexpr std::array<std::string_view, reduce_op_count> reduce_names{
    "SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"};

const DtypeInfo& info(Dtype dtype) { return dtypes[static_cast<std::size_t>(dtype)]; }

std::optional<Dtype> find_dtype(std::string_view text, std::string_view DtypeInfo::*column) {
  const auto row = std::ranges::find(dtypes, text, column);
  return row == dtypes.end() ? std::nullopt : std::optional(static_cast<Dtype>(row - dtypes.begin()));
}

// Rounds a float's bits to the upper 16, to nearest even: bfloat16 is a float32 cut in half.
std::uint16_t float_to_bfloat16(float value) {
  if (std::isnan(value)) {
    return 0x7fc0;
  }
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounding = 0x7fffU + ((bits >> 16) & 1U);
  return static_cast<std::uint16_t>((bits + rounding) >> 16);
}

float bfloat16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// IEEE 754 binary16. Written with exact scaling by powers of two, so that subnormals need no case of
// their own: the value is scaled to units of the target's last place and rounded to an integer.
std::uint16_t float_to_float16(float value) {
  const auto sign = static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(value) >> 16) & 0x8000U);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) {
    return static_cast<std::uint16_t>(sign | 0x7e00U);
  }
  if (magnitude >= 65520.0F) {  // halfway between the largest half and the next power: rounds to infinity
    return static_cast<std::uint16_t>(sign | 0x7c00U);
  }
  if (magnitude == 0.0F) {
    return sign;
  }
  constexpr int least_exponent = -14;  // of normal halves
  constexpr int fraction_bits = 10;
  int exponent = std::max(std::ilogb(magnitude), least_exponent);
  // nearbyint rounds to even in the default rounding mode, the only one this program runs in.
  auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, fraction_bits - exponent)));
  if (units == 2048U) {  // rounded up to the next power of two
    units = 1024U;
    ++exponent;
  }
  const std::uint32_t biased = units < 1024U ? 0U : static_cast<std::uint32_t>(exponent - least_exponent + 1);
  return static_cast<std::uint16_t>(sign | (biased << fraction_bits) | (units & 1023U));
}

float float16_to_float(std::uint16_t bits) {
  const int biased = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  float magnitude = 0;
  if (biased == 31) {
    magnitude =
        fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  } else if (biased == 0) {
    magnitude = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    magnitude = std::ldexp(static_cast<float>(fraction + 1024), biased - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

template <typename T>
T unpack(Bits bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);  // little-endian hosts only; asserted in tensor.cc
  return value;
}

template <typename T>
Bits pack(T value) {
  Bits bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

// Converts a number to an integer type as C++ truncates it, but defined for every input: values that do not fit wrap,
// those beyond int64 are clamped, and NaN is 0.
template <typename T>
T truncate(double value) {
  if (!(std::fabs(value) < 9.2e18)) {
    return std::isnan(value) ? T{0}
                             : (value > 0 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min());
  }
  return static_cast<T>(static_cast<std::int64_t>(value));
}

// Integer arithmetic wraps, as it does in torch.
template <std::integral T>
T step(ReduceOp op, T a, T b) {
  using U = std::make_unsigned_t<T>;
  using Wide = std::common_type_t<U, unsigned>;  // so that uint8 * uint8 is not a signed int
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
    case ReduceOp::premul_sum:
      return static_cast<T>(static_cast<Wide>(static_cast<U>(a)) + static_cast<U>(b));
    case ReduceOp::product:
      return static_cast<T>(static_cast<Wide>(static_cast<U>(a)) * static_cast<U>(b));
    case ReduceOp::min:
      return b < a ? b : a;
    case ReduceOp::max:
      return b > a ? b : a;
    case ReduceOp::band:
      return static_cast<T>(a & b);
    case ReduceOp::bor:
      return static_cast<T>(a | b);
    case ReduceOp::bxor:
      return static_cast<T>(a ^ b);
  }
  return T{};
}

bool step(ReduceOp op, bool a, bool b) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
    case ReduceOp::premul_sum:
    case ReduceOp::max:
    case ReduceOp::bor:
      return a || b;
    case ReduceOp::product:
    case ReduceOp::min:
    case ReduceOp::band:
      return a && b;
    case ReduceOp::bxor:
      return a != b;
  }
  return false;
}

template <std::floating_point T>
T step(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
    case ReduceOp::premul_sum:
      return a + b;
    case ReduceOp::product:
      return a * b;
    case ReduceOp::min:
      return b < a ? b : a;
    case ReduceOp::max:
      return b > a ? b : a;
    case ReduceOp::band:
    case ReduceOp::bor:
    case ReduceOp::bxor:
      break;
  }
  expects(false, "bitwise reductions are refused for floating types before they are matched");
  return a;
}

// An element as C++ computes with it. 16-bit floats are computed in float and rounded, as Gloo and NCCL do.
template <typename T>
struct Plain {
  using Number = T;
  static T load(Bits bits) { return unpack<T>(bits); }
  static Bits store(T value) { return pack(value); }
};
struct Float16 {
  using Number = float;
  static float load(Bits bits) { return float16_to_float(unpack<std::uint16_t>(bits)); }
  static Bits store(float value) { return pack(float_to_float16(value)); }
};
struct Bfloat16 {
  using Number = float;
  static float load(Bits bits) { return bfloat16_to_float(unpack<std::uint16_t>(bits)); }
  static Bits store(float value) { return pack(float_to_bfloat16(value)); }
};
struct Boolean {
  using Number = bool;
  static bool load(Bits bits) { return bits != 0; }
  static Bits store(bool value) { return value ? 1 : 0; }
};

// Calls `use` with the dtype's kind of element.
template <typename Use>
auto with_element(Dtype dtype, Use&& use) {
  switch (dtype) {
    case Dtype::float32:
      return use(Plain<float>());
    case Dtype::float64:
      return use(Plain<double>());
    case Dtype::float16:
      return use(Float16());
    case Dtype::bfloat16:
      return use(Bfloat16());
    case Dtype::int8:
      return use(Plain<std::int8_t>());
    case Dtype::int16:
      return use(Plain<std::int16_t>());
    case Dtype::int32:
      return use(Plain<std::int32_t>());
    case Dtype::int64:
      return use(Plain<std::int64_t>());
    case Dtype::uint8:
      return use(Plain<std::uint8_t>());
    case Dtype::boolean:
      return use(Boolean());
    case Dtype::complex64:
    case Dtype::complex128:
      break;
  }
  expects(false, "complex numbers are handled as pairs of real ones");
  std::abort();
}

template <typename Element>
using NumberOf = typename Element::Number;

}  // namespace

std::size_t size_of(Dtype dtype) { return info(dtype).size; }
std::string_view to_string(Dtype dtype) { return info(dtype).name; }
std::string_view scalar_type_name(Dtype dtype) { return info(dtype).scalar_type; }
bool is_floating(Dtype dtype) { return info(dtype).floating; }
bool is_complex(Dtype dtype) { return dtype == Dtype::complex64 || dtype == Dtype::complex128; }
Dtype real_part_of(Dtype complex) { return complex == Dtype::complex64 ? Dtype::float32 : Dtype::float64; }
std::string_view to_string(ReduceOp op) { return reduce_names[static_cast<std::size_t>(op)]; }

std::optional<Dtype> parse_dtype(std::string_view text) { return find_dtype(text, &DtypeInfo::name); }
std::optional<Dtype> parse_scalar_type(std::string_view name) {
  return find_dtype(name, &DtypeInfo::scalar_type);
}

std::optional<ReduceOp> parse_reduce_op(std::string_view text) {
  const auto found = std::ranges::find_if(
      reduce_names, [text](std::string_view name) { return equal_ignoring_case(name, text); });
  return found == reduce_names.end() ? std::nullopt
                                     : std::optional(static_cast<ReduceOp>(found - reduce_names.begin()));
}

bool supports(ReduceOp op, Dtype dtype) {
  const bool bitwise = op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
  if (is_complex(dtype)) {
    return false;
  }
  return is_floating(dtype) ? !bitwise : op != ReduceOp::premul_sum;
}

Bits encode(double value, Dtype dtype) {
  return with_element(dtype, [value](auto element) {
    using Number = NumberOf<decltype(element)>;
    if constexpr (std::is_same_v<Number, bool>) {
      return element.store(value != 0);
    } else if constexpr (std::is_floating_point_v<Number>) {
      return element.store(static_cast<Number>(value));
    } else {
      return element.store(truncate<Number>(value));
    }
  });
}

Bits encode_integer(std::int64_t value, Dtype dtype) {
  return with_element(dtype, [value](auto element) {
    using Number = NumberOf<decltype(element)>;
    if constexpr (std::is_floating_point_v<Number>) {
      return element.store(static_cast<Number>(static_cast<double>(value)));
    } else {
      return element.store(static_cast<Number>(value));
    }
  });
}

double decode(Bits bits, Dtype dtype) {
  return with_element(dtype, [bits](auto element) { return static_cast<double>(element.load(bits)); });
}

std::int64_t decode_integer(Bits bits, Dtype dtype) {
  return with_element(dtype, [bits](auto element) {
    const auto number = element.load(bits);
    if constexpr (std::is_floating_point_v<NumberOf<decltype(element)>>) {
      return truncate<std::int64_t>(static_cast<double>(number));
    } else {
      return static_cast<std::int64_t>(number);
    }
  });
}

Bits reduce_step(ReduceOp op, Dtype dtype, Bits a, Bits b) {
  return with_element(
      dtype, [=](auto element) { return element.store(step(op, element.load(a), element.load(b))); });
}

Bits finish_average(Dtype dtype, Bits sum, std::int64_t world_size) {
  return with_element(dtype, [=](auto element) {
    using Number = NumberOf<decltype(element)>;
    if constexpr (std::is_floating_point_v<Number>) {
      return element.store(element.load(sum) / static_cast<Number>(world_size));
    } else {
      return element.store(static_cast<Number>(static_cast<std::int64_t>(element.load(sum)) / world_size));
    }
  });
}

Bits reduce_all(ReduceOp op, Dtype dtype, std::span<const Bits> values) {
  Bits total = values.front();
  if (op == ReduceOp::sum && dtype == Dtype::float32) {  // the common case, without a switch per element
    float sum = unpack<float>(total);
    for (const Bits value : values.subspan(1)) {
      sum += unpack<float>(value);
    }
    return pack(sum);
  }
  for (const Bits value : values.subspan(1)) {
    total = reduce_step(op, dtype, total, value);
  }
  return op == ReduceOp::avg ? finish_average(dtype, total, static_cast<std::int64_t>(values.size())) : total;
}

}  // namespace rollcall
