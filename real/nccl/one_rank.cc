#include "real/nccl/one_rank.h"

#include <cstring>

#include <fmt/format.h>
#include <sys/wait.h>

#include "real/nccl/one_rank_bodies.h"
#include "real/rank/child_answer.h"

namespace rollcall::real {
namespace {

std::string end_of(int status) {
  const char* signal = WIFSIGNALED(status) ? ::sigabbrev_np(WTERMSIG(status)) : nullptr;
  return signal != nullptr ? fmt::format("SIG{}", signal) : fmt::format("exit {}", WEXITSTATUS(status));
}

std::string try_one(const OneRankTrial& trial, Duration limit) {
  const ChildAnswer answer = ask_child([&] { return outcome_of(trial); }, limit);
  return answer.is_late ? "hang" : answer.text.empty() ? end_of(answer.status) : answer.text;
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

std::vector<std::string> try_one_rank(Duration limit) {
  std::vector<std::string> outcomes;
  for (const OneRankTrial& trial : one_rank_bodies()) {
    outcomes.push_back(try_one(trial, limit));
  }
  return outcomes;
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
