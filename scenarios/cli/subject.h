#pragma once

// What a path is that somebody hands to rollcall, and which command is for it. `rollcall PATH`, `view` and the messages
// of commands that want something else all ask here.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rollcall::cli {

enum class Subject : std::uint8_t {
  scenario,
  scenarios,  // a directory of them
  script,     // of Python
  dumps,      // what a job left: dumps, logs, stacks, or their directory
  trace,      // a profiler's, or rollcall's own; or one file per rank in a directory
  report,     // rollcall's, as JSON
  page,       // rollcall's, as HTML
  times,      // measured: a table of nccl-tests or PARAM, or docs/slow.md's
};

// By its name and its first bytes. "-" is a scenario. Throws UsageError for what cannot be read.
Subject subject_of(const std::string& path);

// "a Python script"
std::string_view noun_of(Subject subject);

// The command that does the obvious with it, without "rollcall": {"record", "-n", "4", "train.py"}. Empty for a page,
// which a browser shows.
std::vector<std::string> command_for(Subject subject, const std::string& path);

// "a Python script; `rollcall record -n 4 train.py` runs it"
std::string advice_on(Subject subject, const std::string& path);

// For commands that run a scenario: throws UsageError with the advice if `address` is something else. A path that does
// not exist passes, for whoever opens it says so better.
void require_scenario(const std::string& address);

}  // namespace rollcall::cli
