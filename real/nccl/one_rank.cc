#include "real/nccl/one_rank.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "real/launch/process.h"
#include "real/nccl/one_rank_bodies.h"

namespace rollcall::real {
namespace {

std::string read_all(const Descriptor& from, Duration limit) {
  std::string text;
  char bytes[512];
  pollfd ready{from.number(), POLLIN, 0};
  while (::poll(&ready, 1, static_cast<int>(limit / millisecond)) > 0) {
    const ssize_t count = ::read(from.number(), bytes, sizeof bytes);
    if (count <= 0) {
      break;
    }
    text.append(bytes, static_cast<std::size_t>(count));
  }
  return text;
}

std::string end_of(int status) {
  const char* signal = WIFSIGNALED(status) ? ::sigabbrev_np(WTERMSIG(status)) : nullptr;
  return signal != nullptr ? fmt::format("SIG{}", signal) : "hang";
}

std::string try_one(const OneRankTrial& trial, Duration limit) {
  Pipe answer;
  ChildProcess child([&] {
    const std::string outcome = outcome_of(trial);
    const bool told = ::write(answer.write.number(), outcome.data(), outcome.size()) ==
                      static_cast<ssize_t>(outcome.size());
    ::_exit(told ? EXIT_SUCCESS : EXIT_FAILURE);  // a communicator that hangs cannot be destroyed
  });
  answer.write.close();
  std::string outcome = read_all(answer.read, limit);
  if (!outcome.empty()) {
    return outcome;
  }
  pollfd ended{answer.read.number(), 0, 0};
  if (::poll(&ended, 1, 0) == 0) {
    child.kill();  // it still holds the pipe, and says nothing
    return "hang";
  }
  return end_of(child.wait());
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
