#pragma once

// Record: one line of a rank's log. A rank of a real run writes its calls and their results, as they
// happen, to a pipe; a reader of the log, even after the rank's death, can reconstruct the run
// with sim/match's matchers. Nothing here refers to the memory of the process that wrote it.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/c10d/host_calls.h"
#include "sim/c10d/observer.h"
#include "sim/c10d/op.h"

namespace rollcall::real {

// An Op, with the values that the pointers in it referred to.
struct LoggedOp {
  Op op;                              // without tensors, scope and site
  std::vector<std::string> names;     // of the scopes it was issued in, outermost first
  std::vector<std::string> pairings;  // of the same scopes; empty: as the scope's name and parent say
  std::string file;                   // of the site
  std::optional<Shape> input;
  std::optional<Shape> output;
  std::optional<std::vector<Shape>> inputs;
  std::optional<std::vector<Shape>> outputs;
  std::optional<SplitSizes> splits;
  std::vector<RankList> ranks;     // of a call that makes groups, as GroupCall has them
  std::string group_name;          // likewise
  std::optional<StoreCall> store;  // of a call on the store; without its op
  std::optional<Duration> limit;   // after which the call gives up on its own
};

inline constexpr std::int64_t no_batch = -1;

struct Record {
  enum class Kind : std::uint8_t {
    begin,     // the backend is connected; the program starts
    issue,     // `op`, about to be handed to the backend
    refuse,    // ... which raised for the call itself: `type`, `text`
    wait,      // the rank blocks until the call has completed; before `connect`: until it can be made
    connect,   // the call's group has a communicator now: the rank continues, and makes the call
    complete,  // the call completed: `source` of a receive, `digest` of the results, `text` from the store
    result,    // later, of a call on a GPU: `digest` of its results, which the host has seen only now
    fail,      // the call failed: `type`, `text`
    print,     // `text`
    warn,      // `text`
    finish,    // the program has ended
    raise,     // ... by an exception: `type`, `text`
    limit,     // ... by a limit: `type` is its name, `value`
    observe,   // `observation`, `op`: what the rank found out about its data
    gone,      // written by a remote supervisor: the process has ended; `value` as from waitpid, `text`
    die,       // std::terminate: the process is about to abort, because of `text`
    drop,      // the program let go of a message's handle without waiting
  };

  Kind kind = Kind::begin;
  Time at = 0;               // since the run began
  std::int64_t call = -1;    // issue to fail: the number of the call, from 0
  std::int64_t inputs = -1;  // taken so far; -1: the program does not count
  std::int64_t value = 0;    // limit; issue: the number of the first call of its batch, or no_batch
  std::uint64_t digest = 0;
  Rank source = -1;        // inside the group
  bool lost_peer = false;  // fail, refuse: the error is that others are gone or silent
  Time ran_from = -1;      // complete, of a call on a GPU: by events around it; -1: unknown
  Time ran_to = -1;
  std::string type;
  std::string text;
  LoggedOp op;
  std::optional<Observation> observation;
};

// A record as bytes, its length first.
std::string encode(const Record& record);

// Takes bytes as they come out of a pipe and returns records. An unfinished record at the end is lost with the
// process that was writing it.
class Decoder {
 public:
  void feed(const char* bytes, std::size_t count) { bytes_.append(bytes, count); }
  // Throws std::runtime_error for bytes that are not a record.
  std::optional<Record> next();

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

// Receives records. Written to by one rank, perhaps from several of its threads.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  virtual void write(const Record& record) = 0;
};

// The tensors that hold the results of `op` on this rank once it has completed. Empty if there are none: for a
// send, or a reduce on ranks other than its root, whose tensors Gloo leaves with partial sums.
TensorList results_of(const Op& op);

// A hash of their values: equal bits give equal numbers. 0 if there are no tensors, or no values.
std::uint64_t digest_of(const TensorList& results);

}  // namespace rollcall::real
