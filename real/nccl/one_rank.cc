#include "real/nccl/one_rank.h"

#include <cstring>

#include <fmt/core.h>

#include "real/nccl/one_rank_bodies.h"
#include "real/process/forked_work.h"

namespace rollcall::real {
namespace {

std::string try_one(const OneRankTrial& trial, Duration limit) {
  const Ending ending = run_forked([&] { return outcome_of(trial); }, limit);
  switch (ending.kind) {
    case Ending::Kind::returned:
      return ending.result;
    case Ending::Kind::killed:
      return fmt::format("SIG{}", ::sigabbrev_np(ending.number));
    case Ending::Kind::exited:
      return fmt::format("exit {}", ending.number);
    case Ending::Kind::too_slow:
    case Ending::Kind::too_large:
      break;
  }
  return "hang";
}

}  // namespace

std::span<const Trial> one_rank_trials() {
  static const std::vector<Trial> trials = [] {
    std::vector<Trial> list;
    for (const OneRankTrial& trial : one_rank_bodies()) {
      list.push_back(trial.what);
    }
    return list;
  }();
  return trials;
}

std::string try_one_rank(std::size_t trial, Duration limit) {
  return try_one(one_rank_bodies()[trial], limit);
}

bool is_predicted(std::string_view predicted, std::string_view observed) {
  for (;;) {
    const std::size_t bar = predicted.find('|');
    if (predicted.substr(0, bar) == observed) {
      return true;
    }
    if (bar == std::string_view::npos) {
      return false;
    }
    predicted.remove_prefix(bar + 1);
  }
}

}  // namespace rollcall::real
