#pragma once

// The handshake at the start of a connection to the hub of a launched run. Both ends prove that they know the job's
// token, which is not sent, and that they speak the same version. Without a token, the other end has to be a process of
// the same user on this machine.
//
//   hub     challenge   key: the version; value: a nonce
//   rank    proof       key: a nonce; value: HMAC(token, "rank" + the hub's nonce + its own)
//   hub     welcome     value: HMAC(token, "hub" + the rank's nonce + its own)

#include <optional>
#include <string>

#include "real/process/process.h"
#include "real/rank/frames.h"

namespace rollcall::real {

// The version of the protocol on these connections, including records. Any change increments it.
inline constexpr const char* hub_version = "rollcall hub 2";

// The hub's side.
class Greeting {
 public:
  explicit Greeting(std::string token);

  Frame challenge() const;
  // The answer to the rank's proof; null if the proof is wrong.
  std::optional<Frame> welcome(const Frame& proof) const;

 private:
  std::string token_;
  std::string nonce_;
};

// The rank's side: blocks until the hub has sent its welcome. Throws std::runtime_error with the reason if it fails.
void greet_hub(const Descriptor& hub, const std::string& token);

// True if the other end of a TCP connection is a process of this user on this machine (/proc/net/tcp).
bool is_own_process(const Descriptor& connection);

}  // namespace rollcall::real
