#include "sim/diagnose/dump_habits.h"

#include <algorithm>
#include <vector>

namespace rollcall::check {

namespace {

constexpr std::size_t window_before = 24;
constexpr std::size_t memory = 1024;     // calls that a habit is looked for in
constexpr std::size_t context_max = 64;  // calls that are compared

// True if both are the same call on the same group: the same all_reduce on another group is another step of the
// program.
bool same_step(const DumpOp& a, const DumpOp& b) { return a.token == b.token && a.group == b.group; }

// The positions before `at` that share the longest past with it, and the length of that past.
struct Examples {
  std::size_t context = 0;
  std::vector<std::size_t> positions;
};

Examples examples_of(const std::vector<DumpOp>& ops, std::size_t at) {
  Examples examples;
  const std::size_t floor = at > memory ? at - memory : 0;
  for (std::size_t i = floor + 1; i < at; ++i) {
    std::size_t length = 0;
    while (length < context_max && length < i - floor &&
           same_step(ops[i - 1 - length], ops[at - 1 - length])) {
      ++length;
    }
    if (length > examples.context) {
      examples = {length, {}};
    }
    if (length > 0 && length == examples.context) {
      examples.positions.push_back(i);
    }
  }
  return examples;
}

// True if the call at `at` was made again later, after the same past of `context` calls: then it was the beginning
// of a habit.
bool is_done_again(const std::vector<DumpOp>& ops, std::size_t at, std::size_t context) {
  const std::size_t end = std::min(ops.size(), at + memory);
  for (std::size_t i = at + 1; i < end; ++i) {
    std::size_t length = 0;
    while (length < context && same_step(ops[i - 1 - length], ops[at - 1 - length])) {
      ++length;
    }
    if (length == context && same_step(ops[i], ops[at])) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::optional<Departure> find_departure(const RankOps& ops, const DumpOp& op) {
  std::optional<Departure> strongest;
  const auto index = static_cast<std::size_t>(&op - ops.ops.data());
  const std::size_t begin = index > window_before ? index - window_before : 1;
  for (std::size_t at = begin; at < std::min(ops.ops.size(), begin + 4 * window_before); ++at) {
    const Examples examples = examples_of(ops.ops, at);
    const bool is_usual = std::ranges::any_of(
        examples.positions, [&](std::size_t i) { return same_step(ops.ops[i], ops.ops[at]); });
    // The first iteration of a loop breaks with weak habits too; of equally strong ones the later counts.
    const bool is_stronger = !strongest || examples.context >= strongest->context;
    if (!is_usual && !examples.positions.empty() && is_stronger &&
        !is_done_again(ops.ops, at, examples.context)) {
      strongest = Departure{&ops, &ops.ops[at], &ops.ops[examples.positions.back()], examples.context};
    }
  }
  return strongest;
}

}  // namespace rollcall::check
