#pragma once

// The small expression language of scenarios: whole numbers, names, arithmetic, and comparisons.
//
//   rank == 0 && step % 2 == 1
//   is_last_joiner ? rank : -1
//
// Operators, loosest first: ?:  ||  &&  == !=  < <= > >=  + -  * / %  ! - (unary), and parentheses. True is
// 1, anything but 0 is true. Division rounds down and a remainder has the divisor's sign, as in Python, so
// that (rank - 1) % world_size is the neighbor on a ring. There are no strings, no calls, and no assignment:
// an expression can only yield a number.
//
// A text is compiled once, when the file is read, to a short list of steps on a stack of numbers.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rollcall::scenario {

using SlotIndex = std::uint32_t;
inline constexpr SlotIndex no_slot = ~SlotIndex{0};

// A place for a number that a program computes with.
struct Variable {
  enum class State : std::uint8_t { unset, number, not_a_number };

  std::int64_t value = 0;
  State state = State::unset;
};

class Expression {
 public:
  enum class Operation : std::uint8_t {
    constant,  // push operand
    variable,  // push variables[operand]
    add,
    subtract,
    multiply,
    divide,
    remainder,
    equal,
    not_equal,
    less,
    less_equal,
    greater,
    greater_equal,
    negate,
    logical_not,
    to_boolean,          // 0 stays 0, everything else becomes 1
    jump,                // to step `operand`
    jump_if_false,       // pops; to step `operand`
    jump_if_false_keep,  // if false leaves 0 and jumps; otherwise pops
    jump_if_true_keep,   // if true leaves 1 and jumps; otherwise pops
  };
  struct Step {
    Operation action = Operation::constant;
    std::int64_t operand = 0;
    friend bool operator==(const Step&, const Step&) = default;
  };

  // Numbers on the stack at once; deeper expressions are refused when compiled.
  static constexpr std::size_t depth_max = 16;

  explicit Expression(std::vector<Step> steps) : steps_(std::move(steps)) {}

  // The value. `names[slot]` is a variable's name. Throws Error with Python's type: NameError for a variable
  // that was never set, TypeError for one that does not hold a number, ZeroDivisionError, and OverflowError
  // if Python's integers would outgrow 64 bits.
  std::int64_t evaluate(std::span<const Variable> variables, std::span<const std::string> names) const;

  // The value, if it needs no variables and cannot fail.
  std::optional<std::int64_t> constant() const;
  bool mentions(SlotIndex slot) const;
  const std::vector<Step>& steps() const { return steps_; }

 private:
  std::vector<Step> steps_;
};

// An error in an expression, and its position in the text.
struct ExpressionError {
  std::size_t offset = 0;
  std::string message;
  std::string suggestion;
};

// A name's meaning: a slot, or the reason why there is none (with offset 0).
struct NameLookup {
  std::optional<SlotIndex> slot;
  ExpressionError error;
};
using NameResolver = std::function<NameLookup(std::string_view name)>;

// Throws ExpressionError.
Expression compile_expression(std::string_view text, const NameResolver& resolve);

}  // namespace rollcall::scenario
