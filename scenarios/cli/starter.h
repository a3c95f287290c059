#pragma once

// The files that `rollcall init` writes, as they are in scenarios/starter.

#include <string_view>

namespace rollcall::cli {

std::string_view starter_scenario();
std::string_view starter_github();
std::string_view starter_gitlab();
std::string_view starter_gitlab_ci();

}  // namespace rollcall::cli
