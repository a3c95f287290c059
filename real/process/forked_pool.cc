#include "real/process/forked_pool.h"

#include <map>
#include <utility>
#include <vector>

#include <poll.h>

namespace rollcall::real {

namespace {

// How often limits are checked. Short enough that a runaway cannot fill a machine's memory between two checks.
constexpr int look_ms = 20;

using Running = std::map<std::size_t, ForkedWork>;  // by index of the piece
using Endings = std::map<std::size_t, Ending>;      // likewise

// Moves those that end, or exceed a limit, within the next moment from `running` to `ended`. Returns how many.
std::size_t collect(Running& running, Endings& ended, const ForkLimits& limits) {
  std::vector<pollfd> polled;
  for (const auto& [index, child] : running) {
    polled.push_back({child.descriptor(), POLLIN, 0});
  }
  poll_all(polled, look_ms);
  auto place = polled.begin();
  for (auto& [index, child] : running) {
    if ((place++)->revents != 0) {
      ended.emplace(index, child.ending());
    } else if (child.elapsed() > limits.time) {
      ended.emplace(index, child.kill(Ending::Kind::too_slow));
    } else if (child.own_memory() > limits.memory_bytes) {
      ended.emplace(index, child.kill(Ending::Kind::too_large));
    }
  }
  return std::erase_if(running, [&](const auto& entry) { return ended.contains(entry.first); });
}

}  // namespace

void ForkedPool::run(std::size_t count, const Work& work, const Receive& receive, const Watch& watch) {
  Running running;
  Endings early;  // ended before pieces that precede them
  std::size_t started = 0;
  std::size_t received = 0;
  std::size_t done = 0;
  const auto tell = [&] {
    if (watch) {
      watch(started - 1, done);
    }
  };
  while (received < count && interrupted_ == 0) {
    while (started < count && running.size() < static_cast<std::size_t>(limits_.jobs)) {
      const std::size_t index = started++;
      running.try_emplace(
          index, [&] { return work(index); }, ForkedWork::Output::kept);
      tell();
    }
    for (std::size_t ended = collect(running, early, limits_); ended > 0; --ended) {
      ++done;
      tell();
    }
    for (auto next = early.find(received); next != early.end(); next = early.find(received)) {
      if (!receive(received++, std::move(early.extract(next).mapped()))) {
        return;
      }
    }
  }
  for (auto& [index, ending] : early) {  // interrupted: reports the pieces that are done
    if (!receive(index, std::move(ending))) {
      return;
    }
  }
}

}  // namespace rollcall::real
