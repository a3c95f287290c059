#pragma once

// OpTape: the calls of a run's ranks, their times, and how each call and each rank ended. It does not say which calls
// met: the reader has to find that out (tape_replay.h).

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/scope_table.h"
#include "sim/c10d/forwarding_backend.h"
#include "sim/report/report.h"

namespace rollcall::conformance {

// One thing that a rank did.
struct TapeEvent {
  enum class Kind : std::uint8_t {
    issue,        // `op`
    wait,         // for one of `calls`
    record,       // `point`, of a stream
    stream_wait,  // `stream` waits for `point`
    wait_event,   // the host waits for `point`,
    wait_device,  // for everything that it has issued,
    wait_tensor,  // for all of `calls`
    group_call,   // `op`, with `ranks`
    store_call,   // `op`, on `keys`
    compute,
    observe,  // `observation`
  };
  enum class End : std::uint8_t {
    none,  // the rank is in it forever, or died in it
    returned,
    raised,
  };

  Kind kind = Kind::issue;
  End end = End::none;
  bool refused = false;  // issue: refused at once; it has no number
  bool on_host = false;  // wait: no stream can wait instead
  bool limited = false;  // the call itself says how long it may take
  Time at = 0;
  Time until = 0;  // the end of the run if it never ended
  Op op{};
  std::int64_t batch = -1;  // issue: the number of its batch's first call
  Stream stream{};          // wait, stream_wait
  Event point{};
  std::vector<std::int64_t> calls{};  // the rank's, counted from 0
  std::vector<RankList> ranks{};
  std::vector<std::string> keys{};
  bool sets = false;   // store_call: there is a value at its key afterwards
  std::string got{};   // store_call: what the program got, and what it relies on
  std::string want{};  // empty: on nothing
  Observation observation{};
};

struct RankTape {
  enum class End : std::uint8_t { none, finished, raised, died };

  std::deque<TapeEvent> events;  // addresses are stable: an event is marked when its call ends
  End end = End::none;
  std::string type;  // of the exception that it raised
  std::string text;
  std::int64_t inputs = -1;
  bool ran_out = false;         // of inputs
  std::vector<Work> works;      // by call; may be asked only during the run
  std::vector<bool> completed;  // by call: true if it was complete when the program ended
};

struct OpTape {
  explicit OpTape(Rank world_size) : ranks(static_cast<std::size_t>(world_size)) {}

  std::vector<RankTape> ranks;       // by global rank
  std::vector<GroupMembers> groups;  // by GroupId; those that the ranks used
  ScopeTable scopes;
  std::deque<Tensor> tensors;  // without values; the ops point to them
  std::deque<TensorList> lists;
  std::deque<SplitSizes> splits;
};

// Wraps a rank's backend and writes the tape. For sim::Options::decorate.
std::unique_ptr<Backend> tape_around(Backend& inner, OpTape& tape);

// Runs the rank's program and notes how it ended.
void run_on_tape(OpTape& tape, const std::function<void()>& program);

// Adds the deaths, as a launcher would see them; the ranks themselves can no longer report them.
void note_deaths(OpTape& tape, const Report& report);

}  // namespace rollcall::conformance
