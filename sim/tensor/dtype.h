#pragma once

// Element types and reductions, in torch's names, and the arithmetic of one element.
//
// An element travels as its bit pattern (`Bits`: the element's bytes in the low end of 64 bits), so
// that reading an int32 through a float32 tensor gives what a real backend gives, and so that int64
// values above 2^53 stay exact.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace rollcall {

enum class Dtype : std::uint8_t {
  float32,
  float64,
  float16,
  bfloat16,
  int8,
  int16,
  int32,
  int64,
  uint8,
  boolean,
  complex64,  // travel as pairs of real numbers, as torch.view_as_real sees them; no arithmetic of their own
  complex128
};
inline constexpr std::size_t dtype_count = 12;

enum class ReduceOp : std::uint8_t { sum, avg, product, min, max, band, bor, bxor, premul_sum };
inline constexpr std::size_t reduce_op_count = 9;

using Bits = std::uint64_t;

std::size_t size_of(Dtype dtype);                // bytes per element
std::string_view to_string(Dtype dtype);         // "float32", "bool"
std::string_view scalar_type_name(Dtype dtype);  // c10's name: "Float", "Long"
std::optional<Dtype> parse_dtype(std::string_view text);
std::optional<Dtype> parse_scalar_type(std::string_view name);  // c10's
bool is_floating(Dtype dtype);  // as torch's is_floating_point: complex types are not
bool is_complex(Dtype dtype);
Dtype real_part_of(Dtype complex);  // float32 of complex64

std::string_view to_string(ReduceOp op);                         // "SUM"
std::optional<ReduceOp> parse_reduce_op(std::string_view text);  // either case

// True when the reduction is defined for the type: the bitwise ones are for integers and bool, the one with a
// factor for floating types, and complex numbers have none.
bool supports(ReduceOp op, Dtype dtype);

// Number to element, rounded to nearest even for the float types, truncated and wrapped for integers.
Bits encode(double value, Dtype dtype);
Bits encode_integer(std::int64_t value, Dtype dtype);

// Element to number. Integers above 2^53 lose precision here; decode_integer does not.
double decode(Bits bits, Dtype dtype);
std::int64_t decode_integer(Bits bits, Dtype dtype);

// One step of a reduction: a (op) b, rounded to `dtype`. `avg` steps as a sum; see finish_average. So does
// `premul_sum`, whose factor has been multiplied in by then.
Bits reduce_step(ReduceOp op, Dtype dtype, Bits a, Bits b);

// The last step of ReduceOp::avg: sum / world_size, in `dtype`'s arithmetic.
Bits finish_average(Dtype dtype, Bits sum, std::int64_t world_size);

// The whole reduction of one element over all ranks, in rank order, average finished.
Bits reduce_all(ReduceOp op, Dtype dtype, std::span<const Bits> values);

}  // namespace rollcall
