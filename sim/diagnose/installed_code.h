#pragma once

// Tells a program's own files from those of Python and of installed packages.

#include <string_view>

namespace rollcall::check {

// `file`: as a stack names it, absolute or, in py-spy's stacks, from the folder of packages on.
bool is_installed_code(std::string_view file);

// The file from the folder of packages on, "torch/nn/modules/module.py": where packages are installed may differ from
// host to host. `file` itself if it is in none.
std::string_view without_packages_folder(std::string_view file);

}  // namespace rollcall::check
