#pragma once

// Operand: a number that is an argument of a statement.

#include <cstdint>

#include "scenarios/program/expression.h"

namespace rollcall::scenario {

// Index into one of the Program's tables.
using TableIndex = std::uint32_t;
inline constexpr TableIndex none = ~TableIndex{0};

// An argument's number: given, or computed when the statement runs.
struct Operand {
  enum class Kind : std::uint8_t { absent, integer, real, expression };

  Kind kind = Kind::absent;
  union {
    std::int64_t integer = 0;
    double real;
    TableIndex expression;  // of Program::expressions
  };

  explicit operator bool() const { return kind != Kind::absent; }
  static Operand of(std::int64_t value);
  static Operand of_real(double value);
  static Operand computed(TableIndex expression);
};

inline Operand Operand::of(std::int64_t value) {
  Operand operand;
  operand.kind = Kind::integer;
  operand.integer = value;
  return operand;
}
inline Operand Operand::of_real(double value) {
  Operand operand;
  operand.kind = Kind::real;
  operand.real = value;
  return operand;
}
inline Operand Operand::computed(TableIndex expression) {
  Operand operand;
  operand.kind = Kind::expression;
  operand.expression = expression;
  return operand;
}

}  // namespace rollcall::scenario
