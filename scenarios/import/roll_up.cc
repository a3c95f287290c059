#include "scenarios/import/roll_up.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include <nlohmann/json.hpp>

namespace rollcall::scenario {
namespace {

// Longer steps stay written out: they are not read either way, and searching for them costs time.
constexpr std::size_t body_max = 1024;

struct FoundLoop {
  std::size_t body = 1;
  std::size_t count = 1;

  std::size_t saved() const { return (count - 1) * body; }
};

using Numbers = std::span<const std::uint32_t>;

FoundLoop best_loop(Numbers numbers) {
  FoundLoop best;
  for (std::size_t body = 1; body <= std::min(body_max, numbers.size() / 2); ++body) {
    const Numbers first = numbers.first(body);
    FoundLoop loop{body, 1};
    while ((loop.count + 1) * body <= numbers.size() &&
           std::ranges::equal(first, numbers.subspan(loop.count * body, body))) {
      ++loop.count;
    }
    if (loop.saved() > best.saved()) {
      best = loop;
    }
  }
  return best;
}

std::vector<OrderedJson> roll(Numbers numbers, const std::vector<OrderedJson>& statements) {
  std::vector<OrderedJson> rolled;
  while (!numbers.empty()) {
    const FoundLoop loop = best_loop(numbers);
    if (loop.saved() > 1) {
      rolled.push_back({{"repeat", loop.count}, {"do", roll(numbers.first(loop.body), statements)}});
    } else {
      for (std::size_t i = 0; i < loop.body * loop.count; ++i) {
        rolled.push_back(statements[numbers[i]]);
      }
    }
    numbers = numbers.subspan(loop.body * loop.count);
  }
  return rolled;
}

}  // namespace

std::vector<OrderedJson> roll_up(const NumberedProgram& program) {
  return roll(program.numbers, program.statements);
}

}  // namespace rollcall::scenario
