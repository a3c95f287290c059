#pragma once

// Events of Chrome's trace-event JSON, as torch.profiler and rollcall write them. The arguments of communication have
// Kineto's names (torch/csrc/profiler/util.cpp, saveNcclMeta).

#include <string_view>

#include "traces/formats/call_recorder.h"
#include "traces/values/value.h"

namespace rollcall::traces {

struct TraceEvent {
  std::string_view phase;  // "X": with its end; "B": without
  std::string_view category;
  std::string_view name;
  std::int64_t process = -1;  // -1: unknown
  double start_us = 0;
  double duration_us = -1;  // below 0: unknown
  Value arguments;          // a dict, or none
  bool is_call = false;     // the arguments are those of communication
};

// Returns an event without a phase for any other value.
TraceEvent trace_event_of(const Value& value);

// The call that an event's arguments tell about. Group and times of `call` are not set.
struct TraceCall {
  RecordedCall call;
  std::string_view group;
  std::string_view group_description;
  const Value* members = nullptr;  // for members_of
};

TraceCall trace_call_of(const Value& arguments);

}  // namespace rollcall::traces
