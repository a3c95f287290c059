#pragma once

// Gloo's transport, as far as it decides which ranks complete a collective, hang or die, and with which
// bytes. Each member of a slot runs a list of sends, receives and waits (gloo_algorithms.h); messages
// between two ranks stay in order.
//
// The rules (gloo/transport/tcp/pair.cc, unbound_buffer.cc): a send completes when the other side has
// posted its receive; a message longer than that receive aborts the receiving process; a shorter one is
// accepted; every kind of collective has its own slot prefix (gloo/types.h), so messages of
// different kinds never meet.

#include <cstddef>
#include <string>
#include <vector>

#include "sim/match/matcher.h"
#include "sim/tensor/dtype.h"

namespace rollcall::sim::gloo {

struct Step {
  enum class Kind : std::uint8_t { receive, send, await_receive, await_send };

  Kind kind = Kind::receive;
  bool reduces = false;  // receive: reduced into the memory when it is awaited; others overwrite it
  std::uint32_t peer = 0;
  std::size_t offset = 0;  // into the member's memory
  std::size_t length = 0;  // bytes
};
using Steps = std::vector<Step>;

// One rank of a group, in one collective.
struct Member {
  GlooFunction function = GlooFunction::barrier;  // messages meet only those of the same function
  Dtype dtype = Dtype::float32;                   // as this rank sees the bytes
  ReduceOp reduce = ReduceOp::sum;
  std::vector<std::byte> memory;  // in: its input; out: its result
  Steps steps;
};

struct Outcome {
  check::Fate fate = check::Fate::hangs;
  check::Stuck stuck{};  // hangs
  std::string failure;   // crashes: the text that the process leaves on stderr
};

// Runs the members, in group-rank order, until none can continue. A member without steps completes.
std::vector<Outcome> exchange(std::vector<Member>& members,
                              const TorchTraits& torch = traits_of(newest_torch));

// True if a message of this size leaves its sender although the receiver dies when it sees how long it is. By then, as
// much as the sockets of the connection hold is written; the sender of more stays in its send, and gets no error
// (PyTorch 1.13 on loopback with Linux's limits for TCP: 3.8 MB always left, 4.1 MB never did).
bool leaves_unread(std::size_t bytes);

// The text that a process leaves on stderr when a message of `sent` bytes meets a receive of `room` bytes.
std::string overflow_text(std::size_t sent, std::size_t room, const TorchTraits& torch);

}  // namespace rollcall::sim::gloo
