#pragma once

// What `rollcall watch` found out about processes, in addition to their rings: one line per fact.
//
//     rollcall watch 1
//     rank 3 ended: killed by SIGKILL
//     rank 3 exited: with code 0
//     rank 1 stopped: by SIGSTOP
//     rank 2 missing: init_process_group

#include <string_view>
#include <vector>

#include "sim/diagnose/log_fact.h"
#include "traces/logs/log_stream.h"

namespace rollcall::traces {

bool looks_like_watch_log(std::string_view bytes);
std::vector<check::LogFact> read_watch_log(const LogStream& log);

// The first line.
constexpr std::string_view watch_log_title = "rollcall watch 1";

}  // namespace rollcall::traces
