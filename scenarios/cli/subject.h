#pragma once

// Decides what a path is and which command fits it. `rollcall PATH`, `view`, and the messages of commands that want
// another kind of file all use this.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rollcall::cli {

enum class Subject : std::uint8_t {
  scenario,
  scenarios,  // a directory of them
  script,     // in Python
  dumps,      // what a job left: dumps, logs, stacks, or their directory
  trace,      // from a profiler or rollcall; or a directory with one file per rank
  report,     // from rollcall, as JSON
  page,       // from rollcall, as HTML
  nothing,    // a directory without files
  times,      // measured: a table of nccl-tests or PARAM, or the format of docs/slow.md
};

// Decides by the name and the first bytes. "-" is a scenario. Throws UsageError if the file cannot be read.
Subject subject_of(const std::string& path);

// "a Python script"
std::string_view noun_of(Subject subject);

// The obvious command for it, without "rollcall": {"record", "-n", "4", "train.py"}. Empty for a page,
// which a browser shows, and for nothing.
std::vector<std::string> command_for(Subject subject, const std::string& path);

// "a Python script; `rollcall record -n 4 train.py` runs it"
std::string advice_on(Subject subject, const std::string& path);

// For commands that run a scenario: throws UsageError with the advice if `address` is something else. Accepts a path
// that
// does not exist, because the code that opens it has a better message.
void require_scenario(const std::string& address);

}  // namespace rollcall::cli
