#include "scenarios/program/expression.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "sim/base/error.h"
#include "sim/base/expects.h"

namespace rollcall::scenario {
namespace {

using Operation = Expression::Operation;
using Step = Expression::Step;

[[noreturn]] void fail_overflow() {
  throw Error("OverflowError", "a number in an expression does not fit in 64 bits");
}

[[noreturn]] void fail_variable(const Variable& variable, const std::string& name) {
  if (variable.state == Variable::State::unset) {
    throw Error("NameError", fmt::format("name '{}' is not defined", name));
  }
  throw TypeError(fmt::format("{} is not an integer", name));
}

[[noreturn]] void fail_division() { throw Error("ZeroDivisionError", "integer division or modulo by zero"); }

// Rounds down, as Python does: -7 / 2 is -4, and the remainder 1.
std::int64_t divide(std::int64_t a, std::int64_t b) {
  if (b == 0) {
    fail_division();
  }
  if (a == INT64_MIN && b == -1) {
    fail_overflow();
  }
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

std::int64_t remainder(std::int64_t a, std::int64_t b) {
  if (b == 0) {
    fail_division();
  }
  const std::int64_t rest = b == -1 ? 0 : a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

std::int64_t combine(Operation action, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflows = false;
  switch (action) {
    case Operation::add:
      overflows = __builtin_add_overflow(a, b, &result);
      break;
    case Operation::subtract:
      overflows = __builtin_sub_overflow(a, b, &result);
      break;
    case Operation::multiply:
      overflows = __builtin_mul_overflow(a, b, &result);
      break;
    case Operation::divide:
      return divide(a, b);
    case Operation::remainder:
      return remainder(a, b);
    case Operation::equal:
      return a == b;
    case Operation::not_equal:
      return a != b;
    case Operation::less:
      return a < b;
    case Operation::less_equal:
      return a <= b;
    case Operation::greater:
      return a > b;
    case Operation::greater_equal:
      return a >= b;
    case Operation::constant:
    case Operation::variable:
    case Operation::negate:
    case Operation::logical_not:
    case Operation::to_boolean:
    case Operation::jump:
    case Operation::jump_if_false:
    case Operation::jump_if_false_keep:
    case Operation::jump_if_true_keep:
      expects(false, "only operators with two operands are combined");
  }
  if (overflows) {
    fail_overflow();
  }
  return result;
}

std::int64_t negate(std::int64_t value) {
  if (value == INT64_MIN) {
    fail_overflow();
  }
  return -value;
}

// Runs compiled steps. The compiler has checked that the stack suffices.
class Machine {
 public:
  Machine(std::span<const Variable> variables, std::span<const std::string> names)
      : variables_(variables), names_(names) {}

  std::int64_t run(std::span<const Step> steps) {
    for (std::size_t at = 0; at < steps.size();) {
      at = execute(steps[at], at);
    }
    return top();
  }

 private:
  void push(std::int64_t value) { stack_[size_++] = value; }
  std::int64_t pop() { return stack_[--size_]; }
  std::int64_t& top() { return stack_[size_ - 1]; }

  std::int64_t load(std::size_t slot) const {
    const Variable& variable = variables_[slot];
    if (variable.state != Variable::State::number) [[unlikely]] {
      fail_variable(variable, names_[slot]);
    }
    return variable.value;
  }

  // The next step's index.
  std::size_t execute(const Step& step, std::size_t at) {
    const auto target = static_cast<std::size_t>(step.operand);
    switch (step.action) {
      case Operation::constant:
        push(step.operand);
        break;
      case Operation::variable:
        push(load(target));
        break;
      case Operation::negate:
        top() = negate(top());
        break;
      case Operation::logical_not:
        top() = top() == 0;
        break;
      case Operation::to_boolean:
        top() = top() != 0;
        break;
      case Operation::jump:
        return target;
      case Operation::jump_if_false:
        return pop() == 0 ? target : at + 1;
      case Operation::jump_if_false_keep:
      case Operation::jump_if_true_keep:
        return short_circuit(step.action == Operation::jump_if_true_keep, target, at);
      case Operation::add:
      case Operation::subtract:
      case Operation::multiply:
      case Operation::divide:
      case Operation::remainder:
      case Operation::equal:
      case Operation::not_equal:
      case Operation::less:
      case Operation::less_equal:
      case Operation::greater:
      case Operation::greater_equal: {
        const std::int64_t right = pop();
        top() = combine(step.action, top(), right);
        break;
      }
    }
    return at + 1;
  }

  std::size_t short_circuit(bool wanted, std::size_t target, std::size_t at) {
    top() = top() != 0;
    if ((top() != 0) == wanted) {
      return target;
    }
    pop();
    return at + 1;
  }

  std::span<const Variable> variables_;
  std::span<const std::string> names_;
  std::array<std::int64_t, Expression::depth_max> stack_{};
  std::size_t size_ = 0;
};

}  // namespace

std::int64_t Expression::evaluate(std::span<const Variable> variables,
                                  std::span<const std::string> names) const {
  return Machine(variables, names).run(steps_);
}

std::optional<std::int64_t> Expression::constant() const {
  const auto is_variable = [](const Step& step) { return step.action == Operation::variable; };
  if (std::any_of(steps_.begin(), steps_.end(), is_variable)) {
    return std::nullopt;
  }
  try {
    return evaluate({}, {});
  } catch (const Error&) {
    return std::nullopt;  // fails in the rank, at run time, if it gets there
  }
}

bool Expression::mentions(SlotIndex slot) const {
  return std::find(steps_.begin(), steps_.end(),
                   Step{Operation::variable, static_cast<std::int64_t>(slot)}) != steps_.end();
}

}  // namespace rollcall::scenario
