#include "real/rank/greeting.h"

#include <exception>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "real/process/process.h"
#include "real/rank/frames.h"
#include "real/rank/proof.h"
#include "real/rank/sockets.h"

namespace rollcall::real {
namespace {

constexpr Duration proof_within = 5 * second;
constexpr std::size_t strangers_max = 64;
constexpr std::size_t proof_bytes = nonce_bytes + sizeof(Sha256);  // without the introduction

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return (ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24U) == IN_LOOPBACKNET;
  }
  const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return address.ss_family == AF_INET6 &&
         (IN6_IS_ADDR_LOOPBACK(&six) ||
          (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[sizeof six.s6_addr - 4] == IN_LOOPBACKNET));
}

// The user of the socket on this machine that is bound to `own` and connected to `other`; -1: the kernel lists none.
long user_of_socket(std::uint16_t own, std::uint16_t other) {
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);  // the names of the columns
    while (std::getline(file, line)) {
      std::istringstream fields(line);
      std::string number, local, remote, state, queues, timer, retransmissions;
      long user = -1;
      fields >> number >> local >> remote >> state >> queues >> timer >> retransmissions >> user;
      if (fields && local.ends_with(fmt::format(":{:04X}", own)) &&
          remote.ends_with(fmt::format(":{:04X}", other))) {
        return user;
      }
    }
  }
  return -1;
}

// True if the other end of a TCP connection is a process of this user on this machine (/proc/net/tcp).
bool is_own_process(const Descriptor& connection) {
  sockaddr_storage there = {};
  socklen_t size = sizeof there;
  if (::getpeername(connection.number(), reinterpret_cast<sockaddr*>(&there), &size) != 0) {
    return false;
  }
  return is_loopback(there) &&
         user_of_socket(port_of(there), own_port(connection)) == static_cast<long>(::getuid());
}

// A hub answers at once. Something else that listens there may never say a word.
Packet receive_answer(const Descriptor& hub) {
  constexpr int patience_ms = 30'000;
  std::vector<pollfd> polled = {{hub.number(), POLLIN, 0}};
  poll_all(polled, patience_ms);
  if (polled.front().revents == 0) {
    throw Disconnected("what listens at the master's address does not answer as the hub of a run would");
  }
  return receive_packet(hub);
}

}  // namespace

Entrance::Entrance(Descriptor listener, std::string token, std::string role, std::string version)
    : listener_(std::move(listener)),
      token_(std::move(token)),
      role_(std::move(role)),
      version_(std::move(version)) {}

std::uint16_t Entrance::port() const { return own_port(listener_); }

void Entrance::watch(std::vector<pollfd>& polled) const {
  polled.push_back({listener_.number(), POLLIN, 0});
  for (const Stranger& stranger : strangers_) {
    polled.push_back({stranger.connection.number(), POLLIN, 0});
  }
}

std::vector<Entrance::Guest> Entrance::serve(Time now) {
  accept(now);
  std::vector<Guest> guests;
  std::exception_ptr own_fault;
  std::erase_if(strangers_, [&](Stranger& stranger) {
    try {
      return hear(stranger, now, guests);
    } catch (const std::system_error&) {
      own_fault = std::current_exception();
    } catch (const std::runtime_error&) {
      ++refused_;
    }
    return true;
  });
  if (own_fault) {
    std::rethrow_exception(own_fault);
  }
  return guests;
}

void Entrance::accept(Time now) {
  for (std::size_t accepted = 0; accepted < strangers_max; ++accepted) {
    Descriptor connection = accept_from(listener_);
    if (!connection.is_open()) {
      return;
    }
    Stranger stranger{std::move(connection), nonce(), now};
    if (strangers_.size() < strangers_max && (!token_.empty() || is_own_process(stranger.connection)) &&
        send_at_once(stranger.connection, packet(GreetingKind::challenge, stranger.nonce + version_))) {
      strangers_.push_back(std::move(stranger));
    } else {
      ++refused_;
    }
  }
}

// True if the stranger is a guest from now on. Throws std::runtime_error if it is to be refused.
bool Entrance::hear(Stranger& stranger, Time now, std::vector<Guest>& guests) const {
  const bool is_there = receive_available(stranger.connection, stranger.received, greeting_bytes_max);
  const std::optional<Packet> proof = take_packet(stranger.received, greeting_bytes_max);
  if (!proof && is_there && now - stranger.since <= proof_within) {
    return false;
  }
  const std::optional<std::string> welcome = proof && proof->is(GreetingKind::proof)
                                                 ? welcome_to(proof->content, token_, role_, stranger.nonce)
                                                 : std::nullopt;
  if (!welcome || !stranger.received.empty() ||
      !send_at_once(stranger.connection, packet(GreetingKind::welcome, *welcome))) {
    throw std::runtime_error("it does not know the token");
  }
  guests.push_back({std::move(stranger.connection), proof->content.substr(proof_bytes)});
  return true;
}

Reply reply_to(std::string_view challenge, std::string_view token, std::string_view role) {
  if (challenge.size() < nonce_bytes) {
    throw std::runtime_error("a challenge has a nonce");
  }
  const std::string_view theirs = challenge.substr(0, nonce_bytes);
  const std::string own = nonce();
  return {own + proof_of(token, role, theirs, own), proof_of(token, "hub", own, theirs)};
}

std::optional<std::string> welcome_to(std::string_view proof, std::string_view token, std::string_view role,
                                      std::string_view nonce) {
  const std::string_view theirs = proof.substr(0, nonce_bytes);
  if (proof.size() < proof_bytes ||
      !is_equal(proof.substr(nonce_bytes, sizeof(Sha256)), proof_of(token, role, nonce, theirs))) {
    return std::nullopt;
  }
  return proof_of(token, "hub", theirs, nonce);
}

void greet_hub(const Descriptor& hub, const std::string& token) {
  const Packet challenge = receive_answer(hub);
  if (!challenge.is(GreetingKind::challenge) || challenge.content.size() < nonce_bytes) {
    throw Disconnected("what listens at the master's address is not the hub of a run");
  }
  if (const std::string version = challenge.content.substr(nonce_bytes); version != hub_version) {
    throw Disconnected(fmt::format("rank 0 runs another version of rollcall: it says '{}', and this is '{}'",
                                   version, hub_version));
  }
  const Reply reply = reply_to(challenge.content, token, "rank");
  send_all(hub, packet(GreetingKind::proof, reply.proof));
  Packet welcome;
  try {
    welcome = receive_answer(hub);
  } catch (const Disconnected&) {
    throw Disconnected(
        "rank 0 does not accept this rank: is ROLLCALL_TOKEN the same everywhere, and is it one user's job?");
  }
  if (!welcome.is(GreetingKind::welcome) || !is_equal(welcome.content, reply.welcome)) {
    throw Disconnected("what listens at the master's address does not know ROLLCALL_TOKEN");
  }
}

}  // namespace rollcall::real
