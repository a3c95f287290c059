#pragma once

// Decisions: what a run leaves to timing or to chance, decided by somebody outside of it. The one door through which
// a schedule reaches a run: whoever makes the same decisions gets the same run.
//
//   branch  which way a rank takes where timing decides (`choice`)
//   thread  which thread of a rank is next (`parallel`)
//   delay   what chance adds to a rank's computing (jitter): as the seed has it, nothing, or the most
//   order   which of several calls goes ahead: requests to the store, messages that arrive where somebody receives
//           from anyone, and receives that name their source there
//
// Everything else cannot matter: docs/exploration.md says why.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/c10d/op.h"

namespace rollcall::sim {

// A call that waits to go ahead while others may still come before it.
struct Contender {
  enum class Access : std::uint8_t { read, write, count };  // count: adds, and nobody looks at the sum

  enum class Kind : std::uint8_t {
    store,    // a request
    arrival,  // a message reaches its receiver
    posting,  // a receive that names its source is posted
  };

  // The call's own: the same in every run in which its rank has done the same before it.
  std::uint64_t id = 0;
  Kind kind = Kind::store;
  Rank rank = -1;      // global: whose call it is, or who receives
  Rank source = -1;    // of an arrival: the sender, in its group
  GroupId group = 0;   // of an arrival
  bool ready = false;  // else it is still to be made possible: a key is to be set, a receive to be posted
  Time since = 0;      // when it was made
  Access access = Access::write;
  std::vector<std::uint64_t> objects{};  // what it touches; empty: all of the store
};

// Whether one comes after the other in any case: calls of one rank, or messages of one connection.
inline bool is_same_process(const Contender& a, const Contender& b) {
  return a.rank == b.rank && a.source == b.source && a.group == b.group;
}

// Whether it can matter which of two contenders goes first.
bool depend(const Contender& a, const Contender& b);

struct Decision {
  enum class Kind : std::uint8_t { branch, thread, delay, order };

  Kind kind = Kind::branch;
  Rank rank = -1;        // who decides; -1: an order between ranks
  std::size_t ways = 1;  // the first is the usual one
  // order: the ready ones, in the order of the ways, then those that are not
  std::span<const Contender> contenders{};
  // order, where Decisions::wants_state: what the run holds besides what its ranks have learned. Empty: it cannot say.
  std::string_view state{};
};

// "choice", "parallel", "jitter", "order": as scenarios and messages call it.
std::string_view to_string(Decision::Kind kind);

class Decisions {
 public:
  // Instead of a way: this run is of no interest any more, and ends.
  static constexpr std::size_t cut = SIZE_MAX;

  virtual ~Decisions() = default;

  // The way that is taken, less than decision.ways. An order is asked for with a single way as well, and with none
  // when only calls that are not ready are left: where a run hangs, and where all of its ranks have ended.
  virtual std::size_t decide(const Decision& decision) = 0;

  // Whether calls on the store and receives from anyone wait until nothing else can move, and are an `order` then.
  // Otherwise they go ahead at once, in rank order.
  virtual bool orders_calls() const = 0;
  // Whether jitter is asked about; otherwise it is as the seed has it.
  virtual bool draws_delays() const { return false; }
  // There was jitter, and it was not asked about.
  virtual void drew_delay() {}

  // Of an order: whether it decides when messages arrive at this rank. It has to know by the first message, and hears
  // of every receive from anyone to know the next time. `mailbox` stands for group, receiver and tag.
  virtual bool watches([[maybe_unused]] Rank receiver) const { return false; }
  virtual void received_from_anyone([[maybe_unused]] Rank receiver, [[maybe_unused]] std::uint64_t mailbox) {}
  // Whether two messages in this mailbox may be taken by one receive.
  virtual bool is_open_to_anyone([[maybe_unused]] std::uint64_t mailbox) const { return true; }

  // States: whoever compares them is told what each rank learns of the others, as soon as it does, in bytes. A rank's
  // program is a function of that.
  virtual bool compares_states() const { return false; }
  virtual bool wants_state() const { return false; }
  virtual void learned([[maybe_unused]] Rank rank, [[maybe_unused]] std::string_view what) {}
  // What the rank has learned so far matters by `state` only.
  virtual void holds([[maybe_unused]] Rank rank, [[maybe_unused]] std::string_view state) {}

  // Calls that could have been an order went ahead as usual, without being asked about.
  virtual void kept_order() {}
  // The run has looked at the clock: a wait has a limit, or a rank dies at a time. So jitter matters.
  virtual void looked_at_clock() {}
  // Something was ordered by simulated times and by nobody's decision: which thread's call ends first, or a call that
  // could not wait for others any longer because of a limit.
  virtual void ordered_by_clock() {}
};

}  // namespace rollcall::sim
