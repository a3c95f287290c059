#pragma once

// Tells a program's own files from those of Python and of installed packages.

#include <string_view>

namespace rollcall::check {

// `file`: as a stack names it, absolute or, in py-spy's stacks, from the folder of packages on.
bool is_installed_code(std::string_view file);

}  // namespace rollcall::check
