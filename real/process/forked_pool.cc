#include "real/process/forked_pool.h"

#include <cerrno>
#include <map>
#include <utility>
#include <vector>

#include <poll.h>

namespace rollcall::real {

namespace {

// How often limits are checked. Short enough that a runaway cannot fill a machine's memory between two checks.
constexpr int look_ms = 20;

struct Running {
  std::size_t index = 0;
  ForkedWork child;
};

// The running children. next() returns those that end, or exceed a limit, within the next moment.
class Children {
 public:
  explicit Children(const ForkLimits& limits) : limits_(limits) {}

  std::size_t size() const { return running_.size(); }
  void start(std::size_t index, const ForkedPool::Work& work) {
    running_.push_back({index, ForkedWork([&] { return work(index); }, ForkedWork::Output::kept)});
  }

  std::vector<std::pair<std::size_t, Ending>> next() {
    std::vector<pollfd> waited;
    for (const Running& each : running_) {
      waited.push_back({each.child.descriptor(), POLLIN, 0});
    }
    std::vector<std::pair<std::size_t, Ending>> ended;
    if (::poll(waited.data(), waited.size(), look_ms) < 0) {
      if (errno != EINTR) {
        throw_errno("poll");
      }
      return ended;  // a signal; the caller checks which
    }
    std::vector<Running> still;
    for (std::size_t i = 0; i < running_.size(); ++i) {
      ForkedWork& child = running_[i].child;
      if (waited[i].revents != 0) {
        ended.emplace_back(running_[i].index, child.ending());
      } else if (child.elapsed() > limits_.time) {
        ended.emplace_back(running_[i].index, child.kill(Ending::Kind::too_slow));
      } else if (child.own_memory() > limits_.memory_bytes) {
        ended.emplace_back(running_[i].index, child.kill(Ending::Kind::too_large));
      } else {
        still.push_back(std::move(running_[i]));
      }
    }
    running_ = std::move(still);
    return ended;
  }

 private:
  const ForkLimits& limits_;
  std::vector<Running> running_;
};

}  // namespace

void ForkedPool::run(std::size_t count, const Work& work, const Receive& receive, const Watch& watch) {
  Children children(limits_);
  std::map<std::size_t, Ending> early;  // ended before pieces that precede them
  std::size_t started = 0;
  std::size_t received = 0;
  std::size_t done = 0;
  const auto tell = [&] {
    if (watch) {
      watch(started - 1, done);
    }
  };
  while (received < count && interrupted_ == 0) {
    while (started < count && children.size() < static_cast<std::size_t>(limits_.jobs)) {
      children.start(started++, work);
      tell();
    }
    for (auto& [index, ending] : children.next()) {
      early.emplace(index, std::move(ending));
      ++done;
      tell();
    }
    for (auto next = early.find(received); next != early.end(); next = early.find(received)) {
      Ending ending = std::move(next->second);
      early.erase(next);
      if (!receive(received++, std::move(ending))) {
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
