#pragma once

// What a scenario survives, as text and as JSON.

#include <string>

#include "scenarios/variants/what_if.h"

namespace rollcall::cli {

std::string what_if_text(const scenario::WhatIf& found);
std::string what_if_json(const scenario::WhatIf& found);

}  // namespace rollcall::cli
