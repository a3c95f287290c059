#pragma once

// One name per operation: recordings spell them in half a dozen ways.

#include <string>
#include <string_view>

namespace rollcall::traces {

// The Flight Recorder's name for what a trace calls `name`: "all_reduce" for "allreduce", "ALL_REDUCE" or
// "c10d::allreduce_". Empty for what moves no data between ranks: "wait", "init". An unknown name is its own.
std::string recorder_name(std::string_view name);

// The same, and empty for unknown names, too.
std::string_view known_name(std::string_view name);

}  // namespace rollcall::traces
