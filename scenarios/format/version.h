#pragma once

// The version of rollcall. Written into the binary by the build; see cmake/write_version.cmake.

#include <string_view>

namespace rollcall {

// "0.1.0": the released version that this source is or will become.
std::string_view version();

// The commit it was built from, "1f2e3d4c5b" or "1f2e3d4c5b-dirty". Empty if built without git, so
// it belongs in `--version` and in no report: reports do not depend on how rollcall was built.
std::string_view commit();

// The libraries that it was built with and without, on several lines: "Boost 1.81.0, fmt 9.1.0,
// ...".
std::string_view libraries();

}  // namespace rollcall
