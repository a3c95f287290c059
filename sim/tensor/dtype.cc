#include "sim/tensor/dtype.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

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

// A number to an integer type as C++ truncates it, but defined for every input: what does not fit
// wraps, and NaN is 0.
template <typename T>
T truncate(double value) {
  if (!(std::fabs(value) < 9.2e18)) {
    return std::isnan(value) ? T{0}
                             : (value > 0 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min());
  }
  return static_cast<T>(static_cast<std::int64_t>(value));
}

// Integer arithmetic wraps, as it does in torch.
template <typename T>
T step_integer(ReduceOp op, T a, T b) {
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

bool step_bool(ReduceOp op, bool a, bool b) {
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

template <typename T>
T step_float(ReduceOp op, T a, T b) {
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

[[noreturn]] void refuse_complex() {
  expects(false, "complex numbers are handled as pairs of real ones");
  std::abort();
}

}  // namespace

std::size_t size_of(Dtype dtype) { return info(dtype).size; }
std::string_view to_string(Dtype dtype) { return info(dtype).name; }
std::string_view scalar_type_name(Dtype dtype) { return info(dtype).scalar_type; }
bool is_floating(Dtype dtype) { return info(dtype).floating; }
bool is_complex(Dtype dtype) { return dtype == Dtype::complex64 || dtype == Dtype::complex128; }
Dtype real_part_of(Dtype complex) { return complex == Dtype::complex64 ? Dtype::float32 : Dtype::float64; }
std::string_view to_string(ReduceOp op) { return reduce_names[static_cast<std::size_t>(op)]; }

std::optional<Dtype> parse_dtype(std::string_view text) {
  for (std::size_t i = 0; i < dtypes.size(); ++i) {
    if (dtypes[i].name == text) {
      return static_cast<Dtype>(i);
    }
  }
  return std::nullopt;
}

std::optional<ReduceOp> parse_reduce_op(std::string_view text) {
  const auto same = [text](std::string_view name) {
    if (name.size() != text.size()) {
      return false;
    }
    for (std::size_t i = 0; i < name.size(); ++i) {
      const char letter = text[i] >= 'a' && text[i] <= 'z' ? static_cast<char>(text[i] - 'a' + 'A') : text[i];
      if (letter != name[i]) {
        return false;
      }
    }
    return true;
  };
  for (std::size_t i = 0; i < reduce_names.size(); ++i) {
    if (same(reduce_names[i])) {
      return static_cast<ReduceOp>(i);
    }
  }
  return std::nullopt;
}

bool supports(ReduceOp op, Dtype dtype) {
  const bool bitwise = op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
  if (is_complex(dtype)) {
    return false;
  }
  return is_floating(dtype) ? !bitwise : op != ReduceOp::premul_sum;
}

Bits encode(double value, Dtype dtype) {
  switch (dtype) {
    case Dtype::float32:
      return pack(static_cast<float>(value));
    case Dtype::float64:
      return pack(value);
    case Dtype::float16:
      return pack(float_to_float16(static_cast<float>(value)));
    case Dtype::bfloat16:
      return pack(float_to_bfloat16(static_cast<float>(value)));
    case Dtype::int8:
      return pack(truncate<std::int8_t>(value));
    case Dtype::int16:
      return pack(truncate<std::int16_t>(value));
    case Dtype::int32:
      return pack(truncate<std::int32_t>(value));
    case Dtype::int64:
      return pack(truncate<std::int64_t>(value));
    case Dtype::uint8:
      return pack(truncate<std::uint8_t>(value));
    case Dtype::boolean:
      return value != 0 ? 1 : 0;
    case Dtype::complex64:
    case Dtype::complex128:
      break;
  }
  refuse_complex();
}

Bits encode_integer(std::int64_t value, Dtype dtype) {
  switch (dtype) {
    case Dtype::int8:
    case Dtype::int16:
    case Dtype::int32:
    case Dtype::int64:
    case Dtype::uint8: {
      const Bits mask = size_of(dtype) == 8 ? ~Bits{0} : (Bits{1} << (8 * size_of(dtype))) - 1;
      return static_cast<Bits>(value) & mask;
    }
    case Dtype::boolean:
      return value != 0 ? 1 : 0;
    case Dtype::float32:
    case Dtype::float64:
    case Dtype::float16:
    case Dtype::bfloat16:
    case Dtype::complex64:
    case Dtype::complex128:
      break;
  }
  return encode(static_cast<double>(value), dtype);
}

double decode(Bits bits, Dtype dtype) {
  switch (dtype) {
    case Dtype::float32:
      return static_cast<double>(unpack<float>(bits));
    case Dtype::float64:
      return unpack<double>(bits);
    case Dtype::float16:
      return static_cast<double>(float16_to_float(unpack<std::uint16_t>(bits)));
    case Dtype::bfloat16:
      return static_cast<double>(bfloat16_to_float(unpack<std::uint16_t>(bits)));
    case Dtype::int8:
    case Dtype::int16:
    case Dtype::int32:
    case Dtype::int64:
    case Dtype::uint8:
    case Dtype::boolean:
      break;
    case Dtype::complex64:
    case Dtype::complex128:
      refuse_complex();
  }
  return static_cast<double>(decode_integer(bits, dtype));
}

std::int64_t decode_integer(Bits bits, Dtype dtype) {
  switch (dtype) {
    case Dtype::int8:
      return unpack<std::int8_t>(bits);
    case Dtype::int16:
      return unpack<std::int16_t>(bits);
    case Dtype::int32:
      return unpack<std::int32_t>(bits);
    case Dtype::int64:
      return unpack<std::int64_t>(bits);
    case Dtype::uint8:
    case Dtype::boolean:
      return unpack<std::uint8_t>(bits);
    case Dtype::float32:
    case Dtype::float64:
    case Dtype::float16:
    case Dtype::bfloat16:
    case Dtype::complex64:
    case Dtype::complex128:
      break;
  }
  return truncate<std::int64_t>(decode(bits, dtype));
}

Bits reduce_step(ReduceOp op, Dtype dtype, Bits a, Bits b) {
  switch (dtype) {
    case Dtype::float32:
      return pack(step_float(op, unpack<float>(a), unpack<float>(b)));
    case Dtype::float64:
      return pack(step_float(op, unpack<double>(a), unpack<double>(b)));
    case Dtype::float16:  // computed in float32 and rounded, as Gloo and NCCL do
      return pack(float_to_float16(step_float(op, float16_to_float(unpack<std::uint16_t>(a)),
                                              float16_to_float(unpack<std::uint16_t>(b)))));
    case Dtype::bfloat16:
      return pack(float_to_bfloat16(step_float(op, bfloat16_to_float(unpack<std::uint16_t>(a)),
                                               bfloat16_to_float(unpack<std::uint16_t>(b)))));
    case Dtype::int8:
      return pack(step_integer(op, unpack<std::int8_t>(a), unpack<std::int8_t>(b)));
    case Dtype::int16:
      return pack(step_integer(op, unpack<std::int16_t>(a), unpack<std::int16_t>(b)));
    case Dtype::int32:
      return pack(step_integer(op, unpack<std::int32_t>(a), unpack<std::int32_t>(b)));
    case Dtype::int64:
      return pack(step_integer(op, unpack<std::int64_t>(a), unpack<std::int64_t>(b)));
    case Dtype::uint8:
      return pack(step_integer(op, unpack<std::uint8_t>(a), unpack<std::uint8_t>(b)));
    case Dtype::boolean:
      return step_bool(op, a != 0, b != 0) ? 1 : 0;
    case Dtype::complex64:
    case Dtype::complex128:
      break;
  }
  refuse_complex();
}

Bits finish_average(Dtype dtype, Bits sum, std::int64_t world_size) {
  switch (dtype) {
    case Dtype::float32:
      return pack(unpack<float>(sum) / static_cast<float>(world_size));
    case Dtype::float64:
      return pack(unpack<double>(sum) / static_cast<double>(world_size));
    case Dtype::float16:
    case Dtype::bfloat16:
      return encode(
          static_cast<double>(static_cast<float>(decode(sum, dtype)) / static_cast<float>(world_size)),
          dtype);
    case Dtype::int8:
    case Dtype::int16:
    case Dtype::int32:
    case Dtype::int64:
    case Dtype::uint8:
    case Dtype::boolean:
    case Dtype::complex64:
    case Dtype::complex128:
      break;
  }
  return encode_integer(decode_integer(sum, dtype) / world_size, dtype);
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
