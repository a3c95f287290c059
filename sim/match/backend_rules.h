#pragma once

// What the real backends do with calls that do not agree, and what they refuse immediately. One set of rules per
// backend: sim/gloo, sim/nccl.
//
// Gloo's rules were measured on PyTorch 1.13 (golden families mismatch and desync); NCCL's follow from its kernels,
// which exchange data by step number and compare nothing (NCCL src/collectives.cc).

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

  // True when torch itself raises for this call, before anything is exchanged. Called for every call.
  virtual bool refuses(const Op& op) const = 0;
  // The error of such a call, or of one that raises late.
  virtual Error refusal(const Op& op, Rank group_size) const = 0;
  // True when a call is accepted at first: it takes its number, the others wait for it, and its rank raises when it
  // waits.
  virtual bool raises_late(const Op& op, Rank group_size) const = 0;

  // True when results may depend on the backend: then complete() is tried first for every reduction whose calls agree.
  virtual bool has_own_order() const = 0;
  // Completes such a slot, adding in the backend's order. Returns false if it did nothing, because the reference order
  // gives the same bits.
  virtual bool complete(const Op& op, check::Slot& slot) const = 0;

  // Decides the fate of every member of a full slot whose calls differ, and writes the results of those
  // that complete.
  virtual void settle(const check::GroupMatcher& matcher, check::Slot& slot) const = 0;

  // For a slot that some members never reach: decides the fate of those that have (`fates`), and writes the results of
  // those that complete without the others. Does nothing where all members need each other.
  virtual void settle_partly(const check::GroupMatcher&, check::Slot&) const {}

  // The outcome of a send and a receive whose sizes differ: the sender's fate, then the receiver's. Also writes what
  // arrives.
  virtual std::pair<check::Fate, check::Fate> settle(const Op& send, const Op& receive) const = 0;

  // By group rank: what keeps each member in a slot that hangs. Empty: the backend cannot tell.
  virtual std::vector<check::Stuck> stuck_in(const check::GroupMatcher&, const check::Slot&) const {
    return {};
  }

  // The error that a waiting rank sees when its operation times out, and when its peer's process is gone. Empty: it
  // notices nothing and continues to wait.
  virtual std::string timeout_text(Duration timeout, bool in_send) const = 0;
  virtual std::string lost_peer_text() const = 0;
  // The error of work.wait(timeout).
  virtual std::string wait_timeout_text(Duration timeout) const = 0;
};

}  // namespace rollcall::sim
