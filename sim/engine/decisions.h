#pragma once

// Decisions: the choices that a run leaves to timing or to chance, made from outside the run. This is the only way in
// which a schedule can affect a run: the same decisions give the same run.
//
//   branch  which way a rank takes where timing decides (`choice`)
//   thread  which thread of a rank is next (`parallel`)
//   delay   the jitter that is added to a rank's computing: the seed's, none, or the maximum
//   order   which of several calls goes ahead: requests to the store, messages that arrive at a rank that receives
//           from any source, and its receives that name their source
//
// Everything else cannot matter: docs/exploration.md says why.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/c10d/op.h"

namespace rollcall::sim {

// A call that waits to go ahead while other calls may still precede it.
struct Contender {
  enum class Access : std::uint8_t { read, write, count };  // count: an add whose sum the caller ignores

  enum class Kind : std::uint8_t {
    store,    // a request
    arrival,  // a message reaches its receiver
    posting,  // a receive that names its source is posted
  };

  // Identifies the call: the same in every run in which its rank has done the same before.
  std::uint64_t id = 0;
  Kind kind = Kind::store;
  Rank rank = -1;      // global: the caller, or the receiver
  Rank source = -1;    // of an arrival: the sender, in its group
  GroupId group = 0;   // of an arrival
  bool ready = false;  // otherwise a key still has to be set, or a receive to be posted
  Time since = 0;      // when it was made
  Access access = Access::write;
  std::vector<std::uint64_t> objects{};  // the objects that it touches; empty: all of the store
};

// True if the two are ordered in any case: calls of one rank, or messages of one connection.
inline bool is_same_process(const Contender& a, const Contender& b) {
  return a.rank == b.rank && a.source == b.source && a.group == b.group;
}

// True if it can matter which of the two contenders goes first.
bool depend(const Contender& a, const Contender& b);

struct Decision {
  enum class Kind : std::uint8_t { branch, thread, delay, order };

  Kind kind = Kind::branch;
  Rank rank = -1;        // the rank with the choice; -1: an order between ranks
  std::size_t ways = 1;  // the first is the usual one
  // order: the ready ones, in the order of the ways, then the others
  std::span<const Contender> contenders{};
  // order, if Decisions::wants_state: the run's state apart from what its ranks have learned. Empty: unknown.
  std::string_view state{};
};

// "choice", "parallel", "jitter", "order": the name in scenarios and messages.
std::string_view to_string(Decision::Kind kind);

class Decisions {
 public:
  // Instead of a way: the run is no longer of interest, and ends.
  static constexpr std::size_t cut = SIZE_MAX;

  virtual ~Decisions() = default;

  // Returns the way to take, less than decision.ways. Also asked for orders with a single way, and with none
  // when only calls that are not ready are left: when a run hangs, and when all of its ranks have ended.
  virtual std::size_t decide(const Decision& decision) = 0;

  // True if calls on the store and receives from any source wait until nothing else can move and then become an
  // `order`. Otherwise they go ahead at once, in rank order.
  virtual bool orders_calls() const = 0;
  // True if jitter is a decision; otherwise it is the seed's.
  virtual bool draws_delays() const { return false; }
  // There was jitter that was not asked about.
  virtual void drew_delay() {}

  // True if orders decide when messages arrive at this rank. This has to be known by the first message;
  // received_from_anyone reports every receive from any source, so that it is known in the next run. `mailbox` is a
  // hash of group, receiver and tag.
  virtual bool watches([[maybe_unused]] Rank receiver) const { return false; }
  virtual void received_from_anyone([[maybe_unused]] Rank receiver, [[maybe_unused]] std::uint64_t mailbox) {}
  // True if one receive could take either of two messages in this mailbox.
  virtual bool is_open_to_anyone([[maybe_unused]] std::uint64_t mailbox) const { return true; }

  // For comparing states: learned() reports, as bytes, what each rank learns about the others as soon as it does. A
  // rank's program is a function of that.
  virtual bool compares_states() const { return false; }
  virtual bool wants_state() const { return false; }
  virtual void learned([[maybe_unused]] Rank rank, [[maybe_unused]] std::string_view what) {}
  // What the rank has learned so far matters only through `state`.
  virtual void holds([[maybe_unused]] Rank rank, [[maybe_unused]] std::string_view state) {}

  // Calls that could have been an order went ahead in the usual order, without being asked about.
  virtual void kept_order() {}
  // The run has used the clock: a wait has a limit, or a rank dies at a time. So jitter matters.
  virtual void looked_at_clock() {}
  // Simulated times, and not a decision, ordered something: which thread's call ends first, or a call that
  // could not wait for others any longer because of a limit.
  virtual void ordered_by_clock() {}
  // Simulated times decided what the report says, and nothing that ranks do: whether a message was received before its
  // handle was dropped.
  virtual void judged_by_clock() {}
  // A message and another call of its group ran beside each other, which NCCL runs one after the other. The job may
  // hang where this run did not.
  virtual void let_overtake() {}
  // Time passed while a call that `orders_calls` holds back could have gone ahead. If the run looks at the clock as
  // well, what its rank does next can meet a limit or a death that it would have been ahead of.
  virtual void held_back() {}
};

}  // namespace rollcall::sim
