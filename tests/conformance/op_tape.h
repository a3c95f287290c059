#pragma once

// OpTape: what the ranks of a run asked for, and how each of them ended. Nothing on it says what became of the calls:
// that is for whoever reads it to find out (tape_replay.h).

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/dist/forwarding_backend.h"

namespace rollcall::conformance {

// One thing that a rank did.
struct TapeEvent {
  enum class Kind : std::uint8_t {
    issue,        // `op`
    wait,         // for the call that it issued as number `call`
    synchronize,  // with everything it issued before
    group_call,   // `op`, with `ranks`; `made` is the group it got
    store_call,   // `op`, on `keys`
    compute,      // for `duration`
    observe,      // `observation`
  };

  Kind kind = Kind::issue;
  bool returned = false;  // false: the rank is in it for ever
  Op op{};
  std::int64_t call = -1;   // issue, wait: the rank's calls count from 0
  std::int64_t batch = -1;  // issue: the first call of its batch
  Duration duration = 0;
  std::vector<RankList> ranks{};
  std::vector<std::string> keys{};
  std::string got{};   // store_call: what the program got, and what it relies on
  std::string want{};  // empty: on nothing
  Observation observation{};
};

struct RankTape {
  enum class End : std::uint8_t { none, finished, raised };

  std::deque<TapeEvent> events;  // addresses are stable: an event is marked when its call returns
  End end = End::none;
  std::string type;  // of what it raised
  std::string text;
  std::int64_t inputs = -1;
};

struct OpTape {
  explicit OpTape(Rank world_size) : ranks(static_cast<std::size_t>(world_size)) {}

  std::vector<RankTape> ranks;       // by global rank
  std::vector<GroupMembers> groups;  // by GroupId; those that ranks used
  ScopeTable scopes;
  std::deque<Tensor> tensors;  // without values, where the ops point to
  std::deque<TensorList> lists;
  std::deque<SplitSizes> splits;
};

// A backend around each rank's own that writes the tape. To be given to sim::Options::decorate.
std::unique_ptr<Backend> tape_around(Backend& inner, OpTape& tape);

// Runs the rank's program and notes how it ended.
void run_on_tape(OpTape& tape, const std::function<void()>& program);

}  // namespace rollcall::conformance
