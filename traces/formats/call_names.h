#pragma once

// One name per operation: recordings spell them in half a dozen ways.

#include <string>
#include <string_view>

namespace rollcall::traces {

// Returns the Flight Recorder's name for what a trace calls `name`: "all_reduce" for "allreduce", "ALL_REDUCE" or
// "c10d::allreduce_". Empty for calls that move no data between ranks: "wait", "init". An unknown name is unchanged.
std::string recorder_name(std::string_view name);

// The same, but empty for unknown names as well.
std::string_view known_name(std::string_view name);

}  // namespace rollcall::traces
