#pragma once

// Observer: receives what a rank notes for reports: what it prints, how far it gets, and what it finds out about its
// own calls and data. Whether an error is raised as well is up to the program and torch.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/c10d/op.h"
#include "sim/c10d/process_group.h"

namespace rollcall {

struct Observation {
  enum class Kind : std::uint8_t {
    check_failed,  // a tensor does not hold what the program expects
    touched_early,  // a tensor was used before the call that works on it was waited for, at least by this stream
    stood_outside,  // a call on a group its rank does not belong to: nothing happened
    foreign_root,   // a root that does not belong to the group: torch raises
    // A joined rank updates a parameter (`tensor`) with a gradient that the active ranks have replaced: `got`
    // says what it has instead. `handle` is the optimizer.
    stale_gradient,
    waited_again,  // for a message that the rank has waited for before
    // The rank let go of a message's handle before the other end came. Gloo's buffer belongs to the handle and takes
    // the message back with it: a send is never sent, and a receive leaves its connection stuck (gloo/transport/tcp/
    // unbound_buffer.cc, the destructor).
    dropped,
    left_unwaited,  // the rank has ended and never waited for an asynchronous call; only where leaks are asked for
    // The first joinable of Join's list (`handle`) notifies from its own main_hook, as only active ranks may.
    hook_notifies,
  };
  enum class Access : std::uint8_t { read, write, free };

  Kind kind = Kind::check_failed;
  Access access = Access::read;  // touched_early
  std::string tensor{};          // its name in the program
  std::string got{};             // check_failed: values, as text
  std::string want{};
  double surplus = 0;  // check_failed: how much larger the value is than expected
  // check_failed: what each rank contributed to the reduction that made the value, as far as known.
  std::vector<std::pair<Rank, double>> contributions{};
  std::string handle{};  // touched_early: the name of the unfinished call; may be empty
  // touched_early: the operation of the call that touches the tensor; empty: another statement.
  std::string by{};
  // touched_early: the stream that waited for the call, and the one that touched the tensor; empty if none waited.
  std::string ordered{};
  std::string unordered{};
  Op op{};                // the call it is about, without tensors; none for check_failed
  std::int64_t seq = -1;  // its number, where it has one
  Rank root = -1;         // foreign_root: as given, a global rank
  Site site{};            // of the statement
};

// No program's behavior depends on its observer, so it may ignore any note; the base class ignores all of them. Called
// by the rank, like its backend.
class Observer {
 public:
  virtual ~Observer() = default;

  // A line the rank program printed, or a warning it caused ("UserWarning: ...").
  virtual void print(std::string_view /*text*/) {}
  virtual void warn(std::string_view /*text*/) {}

  // A finding of the rank about its own calls and data.
  virtual void observe(const Observation&) {}

  // The rank asks this between two statements. True if its past can be forgotten: none of its calls is in progress, and
  // nothing that it has done is noted. The rank then passes holds() everything that its program holds, as bytes: it
  // continues as it would from any other past that has led to the same state.
  virtual bool can_forget() { return false; }
  virtual void holds(std::string_view /*state*/) {}

  // The rank starts on its input `number`, counted from 0.
  virtual void begin_step(std::int64_t /*number*/) {}

  // For reports about Join: the rank has run out of inputs; and, later, all ranks of the group have. `steps`: its own
  // iterations; `shadow_calls`: the calls it issued in between.
  virtual void joined() {}
  virtual void everyone_joined(const ProcessGroup&, std::int64_t /*steps*/, std::int64_t /*shadow_calls*/) {}
};

}  // namespace rollcall
