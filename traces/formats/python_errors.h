#pragma once

// How Python and C++ programs end: tracebacks, "terminate called", "Fatal Python error". What c10d raises because
// another rank is gone, or did not come in time, is told from errors of the program's own.
//
// Texts of Gloo's transport/tcp (pair.cc, unbound_buffer.cc), of torch/csrc/distributed/c10d (ProcessGroupNCCL.cpp,
// Utils.hpp, socket.cpp, TCPStore.cpp) and of Python's traceback.py and faulthandler.c.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/diagnose/log_fact.h"

namespace rollcall::traces {

bool looks_like_python_errors(std::string_view bytes);

// `rank` is what the file's name says, for lines that do not begin with "[rank2]:"; -1: nothing.
std::vector<check::LogFact> read_python_errors(std::string_view bytes, Rank rank, const std::string& file);

// Of an error's text. Nothing where the error says nothing of its rank: it was stopped by others.
std::optional<check::LogFact::Kind> kind_of_error(std::string_view text);

}  // namespace rollcall::traces
