#pragma once

// Calls as torch's own operators show them, in recordings without the arguments of communication: the dispatcher's
// "c10d::allreduce_" (torch/csrc/distributed/c10d/Ops.cpp) and the range that a backend opens around its work,
// "gloo:all_reduce" (Work in ProcessGroup.cpp). Both are there for one call; neither says of which group it is.

#include <string_view>

#include "traces/formats/call_recorder.h"
#include "traces/values/value.h"

namespace rollcall::traces {

bool is_host_operator(std::string_view name);
bool is_backend_range(std::string_view name);

// What an operator was called with, as far as it is recorded: values, shapes and types, each a list with one
// item per argument, or null.
struct HostOperator {
  std::string_view name;
  const Value* values = nullptr;
  const Value* shapes = nullptr;
  const Value* types = nullptr;
};

// Without group and times.
RecordedCall call_of(const HostOperator& host);

}  // namespace rollcall::traces
