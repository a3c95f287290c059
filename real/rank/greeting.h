#pragma once

// The handshake at the start of a connection between the processes of one job. Both ends prove that they know the job's
// token, which is not sent.
//
//   server   challenge   a nonce, and the version of the protocol
//   client   proof       a nonce, HMAC(token, its role + the server's nonce + its own), and its introduction
//   server   welcome     HMAC(token, "hub" + the client's nonce + its own)

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>

#include "real/process/process.h"
#include "sim/base/time.h"

namespace rollcall::real {

// The kinds of these packets in every protocol, and how much they hold at most.
enum class GreetingKind : std::uint8_t { challenge = 1, proof, welcome };
inline constexpr std::size_t greeting_bytes_max = 256;

// The version of the protocol between the hub of a launched run and its ranks, including records. Any change increments
// it.
inline constexpr const char* hub_version = "rollcall hub 3";

// Where the clients of a server connect. Whoever connects is a stranger until the proof has arrived; without a token,
// it has to be a process of this user on this machine. Nothing else is read from strangers, they have five seconds and
// few bytes, and there are at most 64 at a time. Never blocks.
class Entrance {
 public:
  // `role`: of the clients.
  Entrance(Descriptor listener, std::string token, std::string role, std::string version = "");

  struct Guest {
    Descriptor connection;
    std::string introduction;
  };

  // Returns those who have proven it since the last call. Throws std::system_error for an error that no stranger can
  // cause.
  std::vector<Guest> serve(Time now);
  // Adds the descriptors to poll.
  void watch(std::vector<pollfd>& polled) const;
  // How many connections did not prove it in time, or sent something else.
  int refused() const { return refused_; }
  std::uint16_t port() const;

 private:
  struct Stranger {
    Descriptor connection;
    std::string nonce;
    Time since = 0;
    std::string received{};
  };

  void accept(Time now);
  bool hear(Stranger& stranger, Time now, std::vector<Guest>& guests) const;

  Descriptor listener_;
  std::string token_;
  std::string role_;
  std::string version_;
  std::vector<Stranger> strangers_;
  int refused_ = 0;
};

// The server's welcome; null if the proof is wrong.
std::optional<std::string> welcome_to(std::string_view proof, std::string_view token, std::string_view role,
                                      std::string_view nonce);

// A client's proof, without the introduction, and the welcome that answers it.
struct Reply {
  std::string proof;
  std::string welcome;
};
// Throws std::runtime_error if it is not a challenge.
Reply reply_to(std::string_view challenge, std::string_view token, std::string_view role);

// The rank's side of a launched run: blocks until the hub has sent its welcome. Throws std::runtime_error with the
// reason if it fails.
void greet_hub(const Descriptor& hub, const std::string& token);

}  // namespace rollcall::real
