#pragma once

// How Python and C++ programs end: tracebacks, "terminate called", "Fatal Python error". Distinguishes errors that c10d
// raises because another rank is gone or was too late from the program's own errors.
//
// The texts come from Gloo's transport/tcp (pair.cc, unbound_buffer.cc), from torch/csrc/distributed/c10d
// (ProcessGroupNCCL.cpp, Utils.hpp, socket.cpp, TCPStore.cpp), and from Python's traceback.py and faulthandler.c.

#include <optional>
#include <string_view>
#include <vector>

#include "sim/diagnose/dump.h"
#include "sim/diagnose/log_fact.h"
#include "traces/logs/log_stream.h"

namespace rollcall::traces {

bool looks_like_python_errors(std::string_view bytes);

std::vector<check::LogFact> read_python_errors(const LogStream& log);

// Classifies an error by its text, "RuntimeError: Socket Timeout", and by where it was raised; no frames: unknown.
// Empty if the error says nothing about its own rank because others stopped that rank.
std::optional<check::LogFact::Kind> kind_of_error(std::string_view text, const check::DumpStack& frames = {});

}  // namespace rollcall::traces
