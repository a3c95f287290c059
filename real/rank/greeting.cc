#include "real/rank/greeting.h"

#include <array>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "real/rank/proof.h"
#include "real/rank/sockets.h"

namespace rollcall::real {
namespace {

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

}  // namespace

Greeting::Greeting(std::string token) : token_(std::move(token)), nonce_(nonce()) {}

Frame Greeting::challenge() const { return {FrameKind::challenge, hub_version, nonce_}; }

std::optional<Frame> Greeting::welcome(const Frame& proof) const {
  if (proof.kind != FrameKind::proof || proof.key.size() != nonce_bytes ||
      !is_equal(proof.value, proof_of(token_, "rank", nonce_, proof.key))) {
    return std::nullopt;
  }
  return Frame{FrameKind::welcome, {}, proof_of(token_, "hub", proof.key, nonce_)};
}

void greet_hub(const Descriptor& hub, const std::string& token) {
  const Frame challenge = receive_frame(hub);
  if (challenge.kind != FrameKind::challenge || challenge.value.size() != nonce_bytes) {
    throw Disconnected("what listens at the master's address is not the hub of a run");
  }
  if (challenge.key != hub_version) {
    throw Disconnected(fmt::format("rank 0 runs another version of rollcall: it says '{}', and this is '{}'",
                                   challenge.key, hub_version));
  }
  const std::string own = nonce();
  send_all(hub, frame({FrameKind::proof, own, proof_of(token, "rank", challenge.value, own)}));
  Frame welcome;
  try {
    welcome = receive_frame(hub);
  } catch (const Disconnected&) {
    throw Disconnected(
        "rank 0 does not accept this rank: is ROLLCALL_TOKEN the same everywhere, and is it one user's job?");
  }
  if (welcome.kind != FrameKind::welcome ||
      !is_equal(welcome.value, proof_of(token, "hub", own, challenge.value))) {
    throw Disconnected("what listens at the master's address does not know ROLLCALL_TOKEN");
  }
}

bool is_own_process(const Descriptor& connection) {
  sockaddr_storage there = {};
  socklen_t size = sizeof there;
  if (::getpeername(connection.number(), reinterpret_cast<sockaddr*>(&there), &size) != 0) {
    return false;
  }
  return is_loopback(there) &&
         user_of_socket(port_of(there), own_port(connection)) == static_cast<long>(::getuid());
}

}  // namespace rollcall::real
