#pragma once

// Reads the pickles that PyTorch's Flight Recorder writes, also after Python has loaded and saved them again: protocols
// 2 to 5, numbers, texts, lists, tuples, dicts and references to them.
//
// A pickle is a program for a stack machine that may import and call anything; loading one from a shared disk with
// Python's loader runs it. This reader knows the opcodes that build plain values and refuses all others, so there is
// nothing a file could make it do. Python's Lib/pickletools.py describes the opcodes;
// torch/csrc/jit/serialization/pickler.cpp shows which of them a recorder writes.

#include <string_view>

#include "sim/values/value.h"

namespace rollcall::values {

bool looks_like_pickle(std::string_view bytes);

// The value that a pickle describes. It borrows from `bytes` and `arena`. Time and memory are linear in the size of the
// file, whatever it says. Throws BadFile.
Value read_pickle(std::string_view bytes, Arena& arena);

}  // namespace rollcall::values
