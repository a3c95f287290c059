#include "scenarios/record/rank_link.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

namespace rollcall::scenario {

// Called on the small stack of a fiber: received data goes to the heap.
bool RankLink::receive() {
  using Clock = std::chrono::steady_clock;
  using std::chrono::milliseconds;
  pollfd ready = {connection_.number(), POLLIN, 0};
  for (int count = 0; count <= 0;) {
    const milliseconds left = patience_ - std::chrono::duration_cast<milliseconds>(waited_);
    if (left.count() <= 0) {
      throw RankIsSilent{};
    }
    constexpr milliseconds at_once_max = std::chrono::hours(24);  // poll takes an int
    const Clock::time_point begin = Clock::now();
    count = ::poll(&ready, 1, static_cast<int>(std::min(left, at_once_max).count()));
    waited_ += Clock::now() - begin;
    if (count < 0 && errno != EINTR) {
      break;  // recv says why
    }
  }
  constexpr std::size_t at_once = std::size_t{256} << 10;
  const std::size_t known = received_.size();
  received_.resize(known + at_once);
  ssize_t size = 0;
  while ((size = ::recv(connection_.number(), received_.data() + known, at_once, 0)) < 0 && errno == EINTR) {
  }
  received_.resize(known + static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return size > 0;
}

std::optional<std::string> RankLink::line() {
  for (;;) {
    const std::size_t end = received_.find('\n', searched_);
    if (end != std::string::npos) {
      std::string text = received_.substr(0, end);
      received_.erase(0, end + 1);
      searched_ = 0;
      return text;
    }
    searched_ = received_.size();
    if (!receive()) {
      return std::nullopt;
    }
  }
}

std::string RankLink::bytes(std::int64_t count) {
  const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  while (received_.size() < wanted && receive()) {
  }
  std::string text = received_.substr(0, wanted);
  received_.erase(0, text.size());
  searched_ = 0;
  return text;
}

void RankLink::say(std::string_view line, std::string_view bytes) {
  std::string all(line);
  all += '\n';
  all += bytes;
  for (std::size_t sent = 0; sent < all.size();) {
    const ssize_t size = ::send(connection_.number(), all.data() + sent, all.size() - sent, MSG_NOSIGNAL);
    if (size < 0 && errno != EINTR) {
      return;  // it has disconnected; reading its next line will show that
    }
    sent += static_cast<std::size_t>(std::max<ssize_t>(size, 0));
  }
}

}  // namespace rollcall::scenario
