#pragma once

// Recordings of every format are read into the values of sim/values.

#include "sim/values/value.h"

namespace rollcall::traces {

using namespace values;

}  // namespace rollcall::traces
