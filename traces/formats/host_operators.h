#pragma once

// Calls as torch's own operators show them, in recordings without communication arguments: the dispatcher's
// "c10d::allreduce_" (torch/csrc/distributed/c10d/Ops.cpp) and the range that a backend opens around its work,
// "gloo:all_reduce" (Work in ProcessGroup.cpp). A call leaves both; neither says which group it belongs to.

#include <string_view>

#include "traces/formats/call_recorder.h"
#include "traces/values/value.h"

namespace rollcall::traces {

bool is_host_operator(std::string_view name);
bool is_backend_range(std::string_view name);

// The arguments of an operator, as far as they are recorded: values, shapes, and types, each a list with one
// item per argument, or null.
struct HostOperator {
  std::string_view name;
  const Value* values = nullptr;
  const Value* shapes = nullptr;
  const Value* types = nullptr;
};

// Sets neither the group nor times.
RecordedCall call_of(const HostOperator& host);

}  // namespace rollcall::traces
