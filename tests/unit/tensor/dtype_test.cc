// The reference values are PyTorch's, from torch.tensor(value, dtype) and elementwise arithmetic on CPU.

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "sim/tensor/dtype.h"
#include "tests/catch.h"

namespace rollcall::dtype_test {

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

constexpr Dtype every_real_dtype[] = {Dtype::float32, Dtype::float64, Dtype::float16, Dtype::bfloat16,
                                      Dtype::int8,    Dtype::int16,   Dtype::int32,   Dtype::int64,
                                      Dtype::uint8,   Dtype::boolean};
constexpr Dtype complex_dtypes[] = {Dtype::complex64, Dtype::complex128};

// A number, its encoding, and the number that the encoding represents.
struct Rounding {
  double value;
  Bits bits;
  double stands_for;
};

constexpr Rounding float16_roundings[] = {
    {0.0, 0x0000, 0.0},
    {-0.0, 0x8000, -0.0},
    {1.0, 0x3c00, 1.0},
    {0.1, 0x2e66, 0.0999755859375},
    {1.0 / 3, 0x3555, 0.333251953125},
    {2049.0, 0x6800, 2048.0},  // ties to even, down and up
    {2051.0, 0x6802, 2052.0},
    {1.00048828125, 0x3c00, 1.0},
    {1.00146484375, 0x3c02, 1.001953125},
    {65504.0, 0x7bff, 65504.0},  // the largest
    {65519.0, 0x7bff, 65504.0},
    {65520.0, 0x7c00, inf},
    {-65520.0, 0xfc00, -inf},
    {6.103515625e-05, 0x0400, 6.103515625e-05},              // the least normal
    {6.097555160522461e-05, 0x03ff, 6.097555160522461e-05},  // the largest subnormal
    {1e-05, 0x00a8, 1.0013580322265625e-05},
    {5.960464477539063e-08, 0x0001, 5.960464477539063e-08},  // the least subnormal
    {2.9802322387695312e-08, 0x0000, 0.0},                   // half of it: a tie, to even
    {2.9802325940409415e-08, 0x0001, 5.960464477539063e-08},
    {8.940696716308594e-08, 0x0002, 1.1920928955078125e-07},
    {-3e-08, 0x8001, -5.960464477539063e-08},
    {1e-08, 0x0000, 0.0},
    {inf, 0x7c00, inf},
    {-inf, 0xfc00, -inf},
};

constexpr Rounding bfloat16_roundings[] = {
    {0.0, 0x0000, 0.0},
    {-0.0, 0x8000, -0.0},
    {1.0, 0x3f80, 1.0},
    {0.1, 0x3dcd, 0.10009765625},
    {1.0 / 3, 0x3eab, 0.333984375},
    {3.00390625, 0x4040, 3.0},
    {1.0048828125000002, 0x3f81, 1.0078125},
    {3.01171875, 0x4041, 3.015625},
    {65504.0, 0x4780, 65536.0},
    {123456.789, 0x47f1, 123392.0},
    {3.3895313892515355e+38, 0x7f7f, 3.3895313892515355e+38},  // the largest
    {3.4e+38, 0x7f80, inf},
    {1e-40, 0x0001, 9.183549615799121e-41},  // the least subnormal
    {4.591774807899561e-41, 0x0000, 0.0},    // half of it: a tie, to even
    {inf, 0x7f80, inf},
    {-inf, 0xff80, -inf},
};

void require_roundings(Dtype dtype, const Rounding* begin, const Rounding* end) {
  for (const Rounding* row = begin; row != end; ++row) {
    INFO(to_string(dtype) << " of " << row->value);
    CHECK(encode(row->value, dtype) == row->bits);
    CHECK(decode(row->bits, dtype) == row->stands_for);
    CHECK(std::signbit(decode(row->bits, dtype)) == std::signbit(row->stands_for));
  }
}

// Computes a (op) b in `dtype`, on numbers.
double step(ReduceOp op, Dtype dtype, double a, double b) {
  return decode(reduce_step(op, dtype, encode(a, dtype), encode(b, dtype)), dtype);
}

std::int64_t step(ReduceOp op, Dtype dtype, std::int64_t a, std::int64_t b) {
  return decode_integer(reduce_step(op, dtype, encode_integer(a, dtype), encode_integer(b, dtype)), dtype);
}

}  // namespace

TEST_CASE("every dtype is read back by its name") {
  CHECK(std::size(every_real_dtype) + std::size(complex_dtypes) == dtype_count);
  for (Dtype dtype : every_real_dtype) {
    CHECK(parse_dtype(to_string(dtype)) == dtype);
    CHECK(parse_scalar_type(scalar_type_name(dtype)) == dtype);
  }
  for (Dtype dtype : complex_dtypes) {
    CHECK(parse_dtype(to_string(dtype)) == dtype);
    CHECK(size_of(dtype) == 2 * size_of(real_part_of(dtype)));
  }
  CHECK_FALSE(parse_dtype("float"));
  CHECK_FALSE(parse_dtype(""));
}

TEST_CASE("dtypes have torch's names and sizes") {
  CHECK(to_string(Dtype::boolean) == "bool");
  CHECK(scalar_type_name(Dtype::int64) == "Long");
  CHECK(scalar_type_name(Dtype::float16) == "Half");
  CHECK(size_of(Dtype::bfloat16) == 2);
  CHECK(size_of(Dtype::float64) == 8);
  CHECK(size_of(Dtype::boolean) == 1);
}

TEST_CASE("a reduction is read in either case") {
  CHECK(parse_reduce_op("SUM") == ReduceOp::sum);
  CHECK(parse_reduce_op("bxor") == ReduceOp::bxor);
  CHECK_FALSE(parse_reduce_op("mean"));
  for (std::size_t i = 0; i < reduce_op_count; ++i) {
    auto op = static_cast<ReduceOp>(i);
    CHECK(parse_reduce_op(to_string(op)) == op);
  }
}

TEST_CASE("bitwise reductions are for integers and bool") {
  for (Dtype dtype : complex_dtypes) {
    CHECK_FALSE(supports(ReduceOp::sum, dtype));  // their pairs of real numbers are reduced
  }
  for (Dtype dtype : every_real_dtype) {
    CHECK(supports(ReduceOp::sum, dtype));
    CHECK(supports(ReduceOp::premul_sum, dtype) == is_floating(dtype));
    CHECK(supports(ReduceOp::band, dtype) == !is_floating(dtype));
    CHECK(supports(ReduceOp::bxor, dtype) == !is_floating(dtype));
  }
}

TEST_CASE("float16 rounds to nearest even, through subnormals and to infinity") {
  require_roundings(Dtype::float16, std::begin(float16_roundings), std::end(float16_roundings));
}

TEST_CASE("bfloat16 rounds to nearest even, through subnormals and to infinity") {
  require_roundings(Dtype::bfloat16, std::begin(bfloat16_roundings), std::end(bfloat16_roundings));
}

TEST_CASE("not-a-number stays one in every float type") {
  for (Dtype dtype : {Dtype::float32, Dtype::float64, Dtype::float16, Dtype::bfloat16}) {
    CHECK(std::isnan(decode(encode(std::nan(""), dtype), dtype)));
  }
}

TEST_CASE("all 65536 halves decode and encode to themselves") {
  for (Dtype dtype : {Dtype::float16, Dtype::bfloat16}) {
    std::size_t wrong = 0;
    for (Bits bits = 0; bits <= 0xffff; ++bits) {
      double value = decode(bits, dtype);
      wrong += !std::isnan(value) && encode(value, dtype) != bits ? 1 : 0;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a number becomes an integer by truncation") {
  CHECK(decode(encode(2.9, Dtype::int32), Dtype::int32) == 2);
  CHECK(decode(encode(-2.9, Dtype::int64), Dtype::int64) == -2);
  CHECK(decode(encode(300.0, Dtype::uint8), Dtype::uint8) == 44);  // wraps
  CHECK(decode(encode(0.5, Dtype::boolean), Dtype::boolean) == 1);
}

TEST_CASE("int64 values above 2^53 stay exact") {
  for (std::int64_t value : {(std::int64_t{1} << 53) + 1, std::numeric_limits<std::int64_t>::max(),
                             std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}}) {
    CHECK(decode_integer(encode_integer(value, Dtype::int64), Dtype::int64) == value);
  }
}

TEST_CASE("bits are read as whatever type the reader has") {
  CHECK(decode_integer(encode(1.0, Dtype::float32), Dtype::int32) == 1065353216);
  CHECK(decode_integer(encode(1.0, Dtype::float64), Dtype::int64) == 4607182418800017408);
}

TEST_CASE("sums and products round once per step in the tensor's own type") {
  struct Row {
    Dtype dtype;
    double a, b, sum, product;
  };
  const Row rows[] = {
      {Dtype::float16, 2048, 1, 2048, 2048},
      {Dtype::float16, 2048, 3, 2052, 6144},
      {Dtype::float16, 0.1, 0.2, 0.2998046875, 0.019989013671875},
      {Dtype::float16, 65504, 16, inf, inf},
      {Dtype::float16, 65504, 15, 65504, inf},
      {Dtype::float16, 6.103515625e-05, 0.5, 0.5, 3.0517578125e-05},
      {Dtype::float16, 5.960464477539063e-08, 0.5, 0.5, 0},
      {Dtype::bfloat16, 256, 1, 256, 256},
      {Dtype::bfloat16, 256, 3, 260, 768},
      {Dtype::bfloat16, 0.1, 0.2, 0.30078125, 0.02001953125},
      {Dtype::bfloat16, 1e-20, 1e-20, 2.0011153378882846e-20, 9.183549615799121e-41},
      {Dtype::float32, 16777216, 1, 16777216, 16777216},
      {Dtype::float32, 16777216, 3, 16777220, 50331648},
      {Dtype::float32, 0.1, 0.2, 0.30000001192092896, 0.020000001415610313},
      {Dtype::float32, 1e-30, 1e-15, 1.0000000036274937e-15, 1.401298464324817e-45},
      {Dtype::float64, 9007199254740992, 1, 9007199254740992, 9007199254740992},
      {Dtype::float64, 0.1, 0.2, 0.30000000000000004, 0.020000000000000004},
  };
  for (const Row& row : rows) {
    INFO(to_string(row.dtype) << ' ' << row.a << ' ' << row.b);
    CHECK(step(ReduceOp::sum, row.dtype, row.a, row.b) == row.sum);
    CHECK(step(ReduceOp::product, row.dtype, row.a, row.b) == row.product);
  }
}

TEST_CASE("integer arithmetic wraps") {
  struct Row {
    Dtype dtype;
    std::int64_t a, b, sum, product, band, bor, bxor;
  };
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const Row rows[] = {
      {Dtype::int8, 127, 1, -128, 127, 1, 127, 126},
      {Dtype::int8, -128, -1, 127, -128, -128, -1, 127},
      {Dtype::int8, 100, 3, 103, 44, 0, 103, 103},
      {Dtype::int16, 300, 300, 600, 24464, 300, 300, 0},
      {Dtype::int32, 2147483647, 1, -2147483648, 2147483647, 1, 2147483647, 2147483646},
      {Dtype::int32, 65536, 65537, 131073, 65536, 65536, 65537, 1},
      {Dtype::int64, most, 1, -most - 1, most, 1, most, most - 1},
      {Dtype::int64, 9007199254740993, 2, 9007199254740995, 18014398509481986, 0, 9007199254740995,
       9007199254740995},
      {Dtype::uint8, 200, 3, 203, 88, 0, 203, 203},
      {Dtype::uint8, 255, 1, 0, 255, 1, 255, 254},
  };
  for (const Row& row : rows) {
    INFO(to_string(row.dtype) << ' ' << row.a << ' ' << row.b);
    CHECK(step(ReduceOp::sum, row.dtype, row.a, row.b) == row.sum);
    CHECK(step(ReduceOp::product, row.dtype, row.a, row.b) == row.product);
    CHECK(step(ReduceOp::band, row.dtype, row.a, row.b) == row.band);
    CHECK(step(ReduceOp::bor, row.dtype, row.a, row.b) == row.bor);
    CHECK(step(ReduceOp::bxor, row.dtype, row.a, row.b) == row.bxor);
  }
}

TEST_CASE("minimum and maximum choose one of the two, in every type") {
  for (Dtype dtype : every_real_dtype) {
    INFO(to_string(dtype));
    Bits zero = encode(0, dtype);
    Bits one = encode(1, dtype);
    CHECK(reduce_step(ReduceOp::min, dtype, zero, one) == zero);
    CHECK(reduce_step(ReduceOp::min, dtype, one, zero) == zero);
    CHECK(reduce_step(ReduceOp::max, dtype, zero, one) == one);
    CHECK(reduce_step(ReduceOp::max, dtype, one, zero) == one);
  }
  CHECK(step(ReduceOp::min, Dtype::int8, std::int64_t{-1}, std::int64_t{1}) == -1);     // signed
  CHECK(step(ReduceOp::max, Dtype::uint8, std::int64_t{255}, std::int64_t{1}) == 255);  // unsigned
}

TEST_CASE("bool adds as or and multiplies as and") {
  for (Bits a : {0, 1}) {
    for (Bits b : {0, 1}) {
      CHECK(reduce_step(ReduceOp::sum, Dtype::boolean, a, b) == (a | b));
      CHECK(reduce_step(ReduceOp::product, Dtype::boolean, a, b) == (a & b));
      CHECK(reduce_step(ReduceOp::bxor, Dtype::boolean, a, b) == (a ^ b));
    }
  }
}

TEST_CASE("an average is the sum divided by the world size, in the tensor's type") {
  CHECK(decode(finish_average(Dtype::float32, encode(10, Dtype::float32), 4), Dtype::float32) == 2.5);
  CHECK(decode(finish_average(Dtype::float16, encode(7, Dtype::float16), 2), Dtype::float16) == 3.5);
  CHECK(decode(finish_average(Dtype::float16, encode(1, Dtype::float16), 3), Dtype::float16) ==
        0.333251953125);
  CHECK(decode_integer(finish_average(Dtype::int32, encode_integer(10, Dtype::int32), 4), Dtype::int32) == 2);
}

TEST_CASE("a whole reduction goes through the ranks in order") {
  // In float32, 1e8 + 1 is 1e8, so the order of the terms is visible.
  std::vector<Bits> values;
  for (double value : {1e8, 1.0, -1e8, 1.0}) {
    values.push_back(encode(value, Dtype::float32));
  }
  CHECK(decode(reduce_all(ReduceOp::sum, Dtype::float32, values), Dtype::float32) == 1.0);
  CHECK(decode(reduce_all(ReduceOp::avg, Dtype::float32, values), Dtype::float32) == 0.25);
  CHECK(decode(reduce_all(ReduceOp::min, Dtype::float32, values), Dtype::float32) == -1e8);
}

}  // namespace rollcall::dtype_test
