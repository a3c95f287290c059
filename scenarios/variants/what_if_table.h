#pragma once

// Writes what a scenario survives, as text and as JSON.

#include <string>

#include "scenarios/variants/what_if.h"

namespace rollcall::scenario {

std::string what_if_text(const WhatIf& found);
std::string what_if_json(const WhatIf& found);

}  // namespace rollcall::scenario
