#pragma once

// TapeDevice: the calls of one rank of a tape that are not over yet, and the order in which its GPU runs them. A stream
// holds calls back until everything that it was told to wait for is over; the collectives of a group run one after the
// other. If hosts do not queue (gloo), a call starts as soon as it is issued.

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/c10d/op.h"
#include "sim/c10d/stream.h"
#include "sim/match/message_matcher.h"

namespace rollcall::conformance {

class TapeDevice {
 public:
  using Number = std::size_t;  // of a call, from 0
  struct Call {
    Op op;
    std::int64_t batch = -1;
    std::int64_t seq = -1;
    check::MessageId message = check::no_message;
    std::size_t gate = 0;  // how many of the things that its stream waits for come before it
    Time at = 0;           // when issued; once started, when it started; once done, when it ended
    bool started = false;
    bool done = false;
  };

  // `slots`: how many collectives may run at once; 0: any number.
  TapeDevice(bool queues, int slots) : queues_(queues), slots_(slots) {}

  Number take(const Op& op, std::int64_t batch, Time at);
  Call& call(Number number) { return calls_[number]; }
  const Call& call(Number number) const { return calls_[number]; }
  Number count() const { return calls_.size(); }
  std::int64_t launched(GroupId group) const;  // collectives

  void hold(Stream stream, Number call) { streams_[stream.id].awaited.push_back({call, {}}); }
  void hold(Stream stream, const Event& point);
  void record(const Event& point) {
    marks_[{point.stream.id, point.position}] = streams_[point.stream.id].awaited.size();
  }

  // The rank's process ends, and these of its calls are over then: a call that waits for others never starts.
  void end_with(std::vector<bool> over) { over_at_end_ = std::move(over); }

  // Returns the next call that starts, and marks it as started.
  std::optional<Number> start();
  void finish(Number number, Time at);
  // The same for a collective that is over for other ranks, and for those of its group before it.
  void finish_up_to(Number number, Time at);

  bool is_over(const Event& point);
  bool is_idle() const;
  bool streams_are_idle();

  // Returns the call that a wait actually waits for, which the GPU is running. Nothing if it depends on no other rank.
  std::optional<Number> blocking(Number call) const;
  std::optional<Number> blocking(const Event& point) const;
  std::optional<Number> blocking() const;

 private:
  // Something that a stream waits for: a call, or the first so many things that another stream waits for.
  struct Held {
    Number call = 0;
    std::optional<std::pair<std::uint8_t, std::size_t>> stream;
  };
  struct StreamState {
    std::vector<Held> awaited;
    std::size_t through = 0;  // of `awaited`
    Time at = 0;              // when it got there
  };

  bool reaches(std::uint8_t stream, std::size_t gate);
  bool may_start(Number number);
  bool starts_before_end(Number number) const;
  bool is_over_at_end(const StreamState& stream, std::size_t gate) const;
  std::optional<Number> blocking(const StreamState& stream) const;
  std::optional<Number> running() const;
  std::pair<std::uint8_t, std::size_t> gate_of(const Event& point) const;

  bool queues_;
  int slots_;
  std::deque<Call> calls_;
  std::vector<Number> unstarted_;                                       // in order
  std::map<GroupId, std::deque<Number>> lanes_;                         // collectives that are not done
  std::map<std::uint8_t, StreamState> streams_;                         // by id
  std::map<std::pair<std::uint8_t, std::int64_t>, std::size_t> marks_;  // what precedes each recorded point
  std::optional<std::vector<bool>> over_at_end_;                        // by call; empty: the process stays
  int running_ = 0;                                                     // collectives
};

}  // namespace rollcall::conformance
