#pragma once

// .rollcall of the current folder: what rollcall remembers from one run to the next, like pytest's cache. A repository
// may keep rollcall's wheel there for its CI (starter/github.yml), so git is told to ignore only what rollcall writes.

#include <string>

namespace rollcall::scenario {

constexpr const char* last_failed_file = ".rollcall/last-failed.json";
constexpr const char* failures_folder = ".rollcall/failures";

// Writes a file in this folder, which is made if it does not exist. Throws viz::OutputError.
void write_state(const std::string& path, const std::string& text);

}  // namespace rollcall::scenario
