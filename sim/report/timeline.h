#pragma once

// Timeline: what every rank did, and when. Append-only; recorded only on request.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/c10d/op.h"

namespace rollcall {

// One stretch of one rank's time.
struct Span {
  static constexpr Time open = -1;  // `end` of a call that never returned

  // host: in a call about groups or on the store, which moves no data.
  enum class Kind : std::uint8_t { collective, compute, message, host };

  Time start = 0;
  Time end = open;
  Time issued = -1;       // of recordings: when the host made the call; -1: at `start`
  std::int64_t seq = -1;  // collectives, calls about groups: from 0 per group; messages: per group and rank
  std::int64_t numel = 0;
  Rank rank = 0;   // global
  Rank peer = -1;  // messages: the other end, global; -1: unknown
  Kind kind = Kind::collective;
  bool async_op = false;
  bool shadow = false;       // of a join hook, for a rank that has run out of inputs
  bool by_roofline = false;  // compute: its duration is that of a roofline, not a given one
  std::int16_t stream = -1;  // compute: the stream of the rank's GPU; -1: the host computes
  Dtype dtype = Dtype::float32;
  std::uint32_t name = 0;  // the names below are indexes into Timeline::name
  std::uint32_t group = 0;
  std::uint32_t label = 0;
  std::uint32_t site = 0;
  std::uint32_t arguments = 0;  // "SUM", "root 2", "tag 7": not in name, dtype and numel

  Time called() const { return issued >= 0 ? issued : start; }
  bool moves_data() const { return kind == Kind::collective || kind == Kind::message; }
};

// A rank takes its next input: a training step begins.
struct StepMark {
  Time time = 0;
  Rank rank = 0;
  std::int64_t number = 0;  // from 0
};

class Timeline {
 public:
  void add(const Span& span) { spans_.push_back(span); }
  void add_step(const StepMark& step) { steps_.push_back(step); }
  std::uint32_t intern(std::string_view name);

  const std::vector<Span>& spans() const { return spans_; }
  const std::vector<StepMark>& steps() const { return steps_; }  // of one rank in order
  const std::string& name(std::uint32_t index) const { return names_[index]; }

  // A hash of every span, step and name: equal runs, equal fingerprints, on every machine.
  std::uint64_t fingerprint() const;

 private:
  std::vector<Span> spans_;
  std::vector<StepMark> steps_;
  std::vector<std::string> names_{std::string()};
  std::unordered_map<std::string, std::uint32_t> indexes_;  // looked up, never iterated
};

}  // namespace rollcall
