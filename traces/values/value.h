#pragma once

// Recordings of every format are read into the values of sim/values.

#include "sim/values/value.h"

namespace rollcall::traces {

using values::Arena;
using values::BadFile;
using values::find;
using values::Node;
using values::Value;

}  // namespace rollcall::traces
