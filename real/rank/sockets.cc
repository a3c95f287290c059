#include "real/rank/sockets.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rollcall::real {
namespace {

using std::chrono::steady_clock;

constexpr auto most_waiting = std::chrono::seconds(60);

[[noreturn]] void fail(const std::string& what) {
  throw Disconnected(fmt::format("{}: {}", what, std::strerror(errno)));
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses look_up(const std::string& address, std::uint16_t port) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    throw Disconnected(fmt::format("{}: {}", address, ::gai_strerror(error)));
  }
  return {found, &::freeaddrinfo};
}

Descriptor try_to_connect(const addrinfo* addresses) {
  for (const addrinfo* one = addresses; one != nullptr; one = one->ai_next) {
    Descriptor socket(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    if (socket.is_open() && ::connect(socket.number(), one->ai_addr, one->ai_addrlen) == 0) {
      return socket;
    }
  }
  return {};
}

void send_without_delay(const Descriptor& connection) {
  const int on = 1;
  ::setsockopt(connection.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Closed if that is not possible; errno says why.
Descriptor try_to_listen(const sockaddr& address, socklen_t size) {
  Descriptor listener(::socket(address.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.is_open()) {
    return listener;
  }
  const int on = 1;
  const int off = 0;
  ::setsockopt(listener.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(listener.number(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);  // IPv4 has no such option
  if (::bind(listener.number(), &address, size) != 0 || ::listen(listener.number(), SOMAXCONN) != 0) {
    const int reason = errno;
    listener.close();
    errno = reason;
  }
  return listener;
}

// Likewise, for the first address of that name that is this machine's.
Descriptor try_to_listen_at(const std::string& address, std::uint16_t port) {
  const Addresses addresses = look_up(address, port);
  Descriptor listener;
  for (const addrinfo* one = addresses.get(); one != nullptr && !listener.is_open(); one = one->ai_next) {
    listener = try_to_listen(*one->ai_addr, one->ai_addrlen);
    if (!listener.is_open() && errno != EADDRNOTAVAIL) {
      break;
    }
  }
  return listener;
}

// For errno.
[[noreturn]] void refuse_to_listen(const std::string& address, std::uint16_t port) {
  const std::string what = fmt::format("listening on {}:{}", address, port);
  if (errno == EADDRINUSE || errno == EACCES || errno == EADDRNOTAVAIL) {
    fail(what);
  }
  throw_errno(what.c_str());
}

}  // namespace

Descriptor connect_to(const std::string& address, std::uint16_t port) {
  const Addresses addresses = look_up(address, port);
  const auto until = steady_clock::now() + most_waiting;
  for (;;) {
    Descriptor connection = try_to_connect(addresses.get());
    if (connection.is_open()) {
      send_without_delay(connection);
      return connection;
    }
    if (steady_clock::now() > until) {
      fail(fmt::format("nothing listens on {}:{}", address, port));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

Descriptor listen_at(const std::string& address, std::uint16_t port) {
  Descriptor listener = try_to_listen_at(address, port);
  if (!listener.is_open()) {
    refuse_to_listen(address, port);
  }
  return listener;
}

Descriptor listen_on(const std::string& address, std::uint16_t port) {
  Descriptor listener = try_to_listen_at(address, port);
  if (listener.is_open()) {
    return listener;
  }
  if (errno != EADDRNOTAVAIL) {
    refuse_to_listen(address, port);
  }
  return listen_at("::", port);
}

Descriptor accept_from(const Descriptor& listener) {
  Descriptor connection(::accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC));
  if (connection.is_open()) {
    send_without_delay(connection);
  }
  return connection;
}

std::pair<Descriptor, Descriptor> connected_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::uint16_t port_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  }
  return address.ss_family == AF_INET6 ? ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port) : 0;
}

std::uint16_t own_port(const Descriptor& socket) {
  sockaddr_storage here = {};
  socklen_t size = sizeof here;
  return ::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&here), &size) == 0 ? port_of(here) : 0;
}

std::string local_address(const Descriptor& connection) {
  sockaddr_storage here = {};
  socklen_t size = sizeof here;
  char digits[NI_MAXHOST] = {};
  if (::getsockname(connection.number(), reinterpret_cast<sockaddr*>(&here), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<const sockaddr*>(&here), size, digits, sizeof digits, nullptr, 0,
                    NI_NUMERICHOST) != 0) {
    fail("address of this end of a connection");
  }
  return digits;
}

bool is_disconnection(int error) {
  constexpr std::array theirs = {EPIPE,       ECONNRESET, ECONNABORTED, ECONNREFUSED, ETIMEDOUT, ENETDOWN,
                                 ENETUNREACH, ENETRESET,  EHOSTDOWN,    EHOSTUNREACH, ENOTCONN};
  return std::ranges::find(theirs, error) != theirs.end();
}

void send_all(const Descriptor& connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (is_disconnection(errno)) {
      throw Disconnected(fmt::format("connection to the hub: {}", std::strerror(errno)));
    } else if (errno != EINTR) {
      throw_errno("send");
    }
  }
}

std::string receive_some(const Descriptor& connection) {
  char bytes[64 * 1024];
  for (;;) {
    const ssize_t count = ::recv(connection.number(), bytes, sizeof bytes, 0);
    if (count >= 0) {
      return {bytes, static_cast<std::size_t>(count)};
    }
    if (is_disconnection(errno)) {
      return {};
    }
    if (errno != EINTR) {
      throw_errno("recv");
    }
  }
}

bool receive_available(const Descriptor& connection, std::string& bytes, std::size_t bytes_max) {
  std::array<char, 64 * 1024> buffer;
  while (bytes.size() <= bytes_max) {
    const ssize_t count = ::recv(connection.number(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count > 0) {
      bytes.append(buffer.data(), static_cast<std::size_t>(count));
    } else if (count == 0 || is_disconnection(errno)) {
      return false;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return true;
    } else if (errno != EINTR) {
      throw_errno("recv");
    }
  }
  return true;
}

bool send_at_once(const Descriptor& connection, std::string_view bytes) {
  const ssize_t sent = ::send(connection.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR && !is_disconnection(errno)) {
    throw_errno("send");
  }
  return sent == static_cast<ssize_t>(bytes.size());
}

}  // namespace rollcall::real
