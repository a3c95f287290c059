#pragma once

// A node of a Chakra trace, and the calls that communication nodes stand for, whichever way they were written
// (mlcommons/chakra: schema/protobuf/et_def.proto).

#include <cstdint>
#include <string_view>

#include "traces/formats/call_recorder.h"

namespace rollcall::traces {

namespace chakra_type {
constexpr std::int64_t send = 5;
constexpr std::int64_t recv = 6;
constexpr std::int64_t collective = 7;
}  // namespace chakra_type

struct ChakraAttribute {
  std::string_view name;
  std::int64_t number = -1;
  std::string_view text;
};

struct ChakraNode {
  std::int64_t type = 0;
  std::int64_t start_us = 0;
  std::int64_t duration_us = 0;
  std::int64_t comm_type = -1;
  std::int64_t comm_size = -1;  // bytes
  std::int64_t source = -1;
  std::int64_t destination = -1;
  std::string_view group;

  void set(const ChakraAttribute& attribute);
};

// The calls of one rank.
class ChakraCalls {
 public:
  explicit ChakraCalls(Rank rank) : rank_(rank) {}

  void add(const ChakraNode& node);
  RankRecording finish() { return calls_.finish(false); }

 private:
  CallRecorder calls_;
  Rank rank_;
};

}  // namespace rollcall::traces
