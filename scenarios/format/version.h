#pragma once

// Which rollcall this is. Written into the binary by the build; see cmake/write_version.cmake.

#include <string_view>

namespace rollcall {

// "0.1.0": the released version this source is, or will become.
std::string_view version();

// The commit it was built from, "1f2e3d4c5b" or "1f2e3d4c5b-dirty". Empty when built without git, so
// it belongs in `--version` and nowhere in a report: reports do not depend on how rollcall was built.
std::string_view commit();

// What it was built with and what it was built without, some lines: "Boost 1.81.0, fmt 9.1.0, ...".
std::string_view libraries();

}  // namespace rollcall
