#pragma once

// How print statements show objects.

#include <string>

#include "sim/c10d/object.h"

namespace rollcall::scenario {

// Python's repr: "{'loss': 0.5}", "[1, None]".
std::string object_text(const Object& object);

}  // namespace rollcall::scenario
