#include "scenarios/watch/network.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <fmt/core.h>

#include "real/process/process.h"
#include "scenarios/watch/clock.h"

namespace rollcall::watch {

namespace {

using real::Descriptor;

std::string name_of(const Address& address) { return fmt::format("{}:{}", address.host, address.port); }

// Returns false if the time is over.
bool wait_for(const Descriptor& connection, short events, Time until) {
  for (;;) {
    const Duration left = until - monotonic_now();
    if (left <= 0) {
      return false;
    }
    pollfd polled = {connection.number(), events, 0};
    const int ready = ::poll(&polled, 1, static_cast<int>(left / millisecond) + 1);
    if (ready > 0) {
      return true;
    }
    if (ready < 0 && errno != EINTR) {
      return false;
    }
  }
}

Descriptor connect_before(const Address& address, Time until) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int problem =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (problem != 0) {
    throw NoAnswer(fmt::format("{}: {}", name_of(address), ::gai_strerror(problem)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, ::freeaddrinfo);
  std::string reason = "no address";
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    Descriptor connection(::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!connection.is_open()) {
      continue;
    }
    if (::connect(connection.number(), each->ai_addr, each->ai_addrlen) != 0 && errno != EINPROGRESS) {
      reason = std::strerror(errno);
      continue;
    }
    if (!wait_for(connection, POLLOUT, until)) {
      reason = "no answer";
      continue;
    }
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(connection.number(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == 0) {
      return connection;
    }
    reason = std::strerror(error);
  }
  throw NoAnswer(fmt::format("{}: {}", name_of(address), reason));
}

void send_before(const Descriptor& connection, std::string_view bytes, const Address& address, Time until) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno != EINTR && (errno != EAGAIN || !wait_for(connection, POLLOUT, until))) {
      throw NoAnswer(fmt::format("{}: it does not take the question", name_of(address)));
    }
  }
}

// The length that a header of HTTP announces; npos: none.
std::size_t announced_length(std::string_view answer) {
  const std::size_t end = answer.find("\r\n\r\n");
  if (end == std::string_view::npos) {
    return std::string_view::npos;
  }
  constexpr std::string_view field = "\r\ncontent-length:";
  const auto same = [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); };
  const std::string_view head = answer.substr(0, end);
  const auto place = std::search(head.begin(), head.end(), field.begin(), field.end(),
                                 [&](char text, char wanted) { return same(wanted, text); });
  if (place == head.end()) {
    return std::string_view::npos;
  }
  std::string_view number = head.substr(static_cast<std::size_t>(place - head.begin()) + field.size());
  number.remove_prefix(std::min(number.find_first_not_of(' '), number.size()));
  std::size_t length = 0;
  const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), length);
  return error == std::errc() && length <= answer_bytes_max ? end + 4 + length : std::string_view::npos;
}

}  // namespace

real::Descriptor connect_to_server(const Address& address, Duration within) {
  return connect_before(address, monotonic_now() + within);
}

std::string ask_server(const Address& address, std::string_view question, Duration within) {
  constexpr Duration silence_max = 500 * millisecond;
  const Time until = monotonic_now() + within;
  const Descriptor connection = connect_before(address, until);
  send_before(connection, question, address, until);
  std::string answer;
  const bool is_http = (question.starts_with("GET ") || question.starts_with("POST "));
  for (std::array<char, 65536> buffer;;) {
    const Time quiet = answer.empty() || is_http ? until : std::min(until, monotonic_now() + silence_max);
    if (!wait_for(connection, POLLIN, quiet)) {
      if (answer.empty() || is_http) {
        throw NoAnswer(fmt::format("{}: no answer within {} s", name_of(address), within / second));
      }
      return answer;
    }
    const ssize_t count = ::recv(connection.number(), buffer.data(), buffer.size(), 0);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) {
      continue;
    }
    if (count <= 0) {
      return answer;
    }
    answer.append(buffer.data(), static_cast<std::size_t>(count));
    if (answer.size() > answer_bytes_max) {
      throw NoAnswer(fmt::format("{}: more than {} MiB", name_of(address), answer_bytes_max >> 20U));
    }
    if (is_http && answer.size() >= announced_length(answer)) {
      return answer;
    }
  }
}

std::string ask_http(const Address& address, Method method, std::string_view path, Duration within) {
  const std::string request =
      fmt::format("{} {} HTTP/1.0\r\nHost: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                  method == Method::get ? "GET" : "POST", path, name_of(address));
  const std::string answer = ask_server(address, request, within);
  const std::size_t end = answer.find("\r\n\r\n");
  if (!answer.starts_with("HTTP/1.") || end == std::string::npos) {
    throw NoAnswer(fmt::format("{}: what answers there does not speak HTTP", name_of(address)));
  }
  const std::size_t status = answer.find(' ');
  if (answer.substr(status + 1, 3) != "200") {
    const std::string_view line = std::string_view(answer).substr(status + 1, answer.find('\r') - status - 1);
    throw NoAnswer(fmt::format("{}{}: {}", name_of(address), path, line));
  }
  return answer.substr(end + 4);
}

}  // namespace rollcall::watch
