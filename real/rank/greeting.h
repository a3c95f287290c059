#pragma once

// How a connection to the hub of a launched run begins. Both ends prove that they know the job's token, which is not
// sent, and speak the same version. Without a token, the other end has to be a process of the same user on this
// machine.
//
//   hub     challenge   key: the version; value: a nonce
//   rank    proof       key: a nonce; value: HMAC(token, "rank" + the hub's nonce + its own)
//   hub     welcome     value: HMAC(token, "hub" + the rank's nonce + its own)

#include <optional>
#include <string>

#include "real/process/process.h"
#include "real/rank/frames.h"

namespace rollcall::real {

// Of what is said on these connections, records included. Any change counts it up.
inline constexpr const char* hub_version = "rollcall hub 2";

// The hub's side.
class Greeting {
 public:
  explicit Greeting(std::string token);

  Frame challenge() const;
  // What to answer to the rank's proof; nothing: it is none.
  std::optional<Frame> welcome(const Frame& proof) const;

 private:
  std::string token_;
  std::string nonce_;
};

// The rank's side: blocks until the hub has said welcome. Throws std::runtime_error with what is wrong.
void greet_hub(const Descriptor& hub, const std::string& token);

// Whether the other end of a TCP connection is a process of this user on this machine (/proc/net/tcp).
bool is_own_process(const Descriptor& connection);

}  // namespace rollcall::real
