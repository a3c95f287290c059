#pragma once

// What the real backends do with calls that do not agree, and what they refuse on the spot. One set of
// rules per backend: sim/gloo, sim/nccl.
//
// Gloo's rules were measured on PyTorch 1.13 (golden families mismatch and desync); NCCL's follow from
// its kernels, which exchange data by step number and compare nothing (NCCL src/collectives.cc).

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "sim/c10d/backend_traits.h"
#include "sim/match/matcher.h"
#include "sim/match/message_matcher.h"

namespace rollcall::sim {

class BackendRules {
 public:
  virtual ~BackendRules() = default;

  virtual const BackendTraits& traits() const = 0;

  // True when torch raises for this call by itself, before anything is exchanged. Asked for every call.
  virtual bool refuses(const Op& op) const = 0;
  // The error that such a call, or one that raises late, raises.
  virtual Error refusal(const Op& op, Rank group_size) const = 0;
  // True when a call is accepted first: it takes its number, the others wait for it, and its rank raises when
  // it waits.
  virtual bool raises_late(const Op& op, Rank group_size) const = 0;

  // True when results may depend on the backend: then complete() is asked first for every reduction whose
  // calls agree.
  virtual bool has_own_order() const = 0;
  // Completes such a slot, adding in the backend's order. False: nothing was done, and the reference order
  // gives the same bits.
  virtual bool complete(const Op& op, check::Slot& slot) const = 0;

  // Decides the fate of every member of a full slot whose calls differ, and writes the results of those
  // that complete.
  virtual void settle(const check::GroupMatcher& matcher, check::Slot& slot) const = 0;

  // Of a slot that some members never come to: decides the fate of those that are there (`fates`), and writes
  // the results of those that complete without the others. Nothing happens where everybody needs everybody.
  virtual void settle_partly(const check::GroupMatcher&, check::Slot&) const {}

  // What becomes of a send and a receive whose sizes differ: the sender's fate, then the receiver's. Also
  // writes what arrives.
  virtual std::pair<check::Fate, check::Fate> settle(const Op& send, const Op& receive) const = 0;

  // By group rank: what keeps members in a slot that hangs. Empty: the backend cannot tell.
  virtual std::vector<check::Stuck> stuck_in(const check::GroupMatcher&, const check::Slot&) const {
    return {};
  }

  // What a waiting rank sees when its operation times out, and when its peer's process is gone. Empty:
  // it notices nothing and goes on waiting.
  virtual std::string timeout_text(Duration timeout, bool in_send) const = 0;
  virtual std::string lost_peer_text() const = 0;
  // What work.wait(timeout) raises.
  virtual std::string wait_timeout_text(Duration timeout) const = 0;
};

}  // namespace rollcall::sim
