#include "scenarios/record/rank_link.h"

#include <algorithm>
#include <cerrno>

#include <poll.h>
#include <sys/socket.h>

namespace rollcall::scenario {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds look_every(500);
constexpr milliseconds look_again_every(5);                   // at a rank that was blocked
constexpr milliseconds at_once_max = std::chrono::hours(24);  // poll takes an int

// The process at the other end.
pid_t process_of(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return peer.pid;
}

}  // namespace

// Returns whether anything came. Called on the small stack of a fiber: received data goes to the heap.
bool RankLink::receive_within(milliseconds limit) {
  const milliseconds left = patience_ - std::chrono::duration_cast<milliseconds>(waited_);
  if (left.count() <= 0) {
    throw RankIsSilent{};
  }
  pollfd ready = {connection_.number(), POLLIN, 0};
  const Clock::time_point begin = Clock::now();
  const int count = ::poll(&ready, 1, static_cast<int>(std::min(left, limit).count()));
  waited_ += Clock::now() - begin;
  if (count == 0 || (count < 0 && errno == EINTR)) {
    return false;  // after another error, recv says what is wrong
  }
  looked_.reset();
  constexpr std::size_t at_once = std::size_t{256} << 10;
  const std::size_t known = received_.size();
  received_.resize(known + at_once);
  ssize_t size = 0;
  while ((size = ::recv(connection_.number(), received_.data() + known, at_once, 0)) < 0 && errno == EINTR) {
  }
  received_.resize(known + static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  is_connected_ = size > 0;
  return true;
}

bool RankLink::comes() {
  while (received_.empty() && is_connected_ &&
         !receive_within(looked_ && looked_->is_blocked ? look_again_every : look_every)) {
    if (looks_blocked()) {
      return false;
    }
  }
  return true;
}

bool RankLink::looks_blocked() {
  Look look{real::process_state(process_of(connection_.number())), Clock::now()};
  if (looked_ && sleeps_between(*looked_, look)) {
    looked_->is_blocked = true;
  } else {
    looked_ = std::move(look);
  }
  return looked_->is_blocked;
}

bool RankLink::sleeps_between(const Look& before, const Look& now) {
  const std::chrono::nanoseconds elapsed = now.at - before.at;
  const real::Effort made = real::effort(before.process, now.process, Duration{elapsed.count()});
  return before.process.state == 'S' && now.process.state == 'S' && !made.any();
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
    if (!is_connected_) {
      return std::nullopt;
    }
    receive_within(at_once_max);
  }
}

std::string RankLink::bytes(std::int64_t count) {
  const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  while (received_.size() < wanted && is_connected_) {
    receive_within(at_once_max);
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
