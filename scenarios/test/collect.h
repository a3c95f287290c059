#pragma once

// Which scenarios there are to test, and which of them are wanted.

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "scenarios/format/cases.h"
#include "scenarios/test/keyword_expression.h"

namespace rollcall::scenario {

// What was asked for does not exist. The text is one line, for the user.
struct NotFound : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A case, or a file that cannot be read: then there is nothing but its name, and the reason.
struct Collected {
  Case one;
  std::string unreadable;  // empty: it can be
};

// Scenario files below folders, and files as they are, each with its cases; sorted below a folder, in the order of the
// paths otherwise, nothing twice. Throws NotFound for paths and cases that do not exist.
std::vector<Collected> collect(const std::vector<std::string>& paths);

struct Selection {
  KeywordExpression keywords{""};     // -k: words that the file's path, the case's name or a tag contains
  KeywordExpression tags{""};         // -m: words that are tags
  std::set<std::string> addresses{};  // --lf: only these; empty: all
};

// What is left. A file that cannot be read has only its path to be chosen by.
std::vector<Collected> select(std::vector<Collected> all, const Selection& selection);

// Every file below `folder` that looks like a scenario, sorted. Throws std::filesystem::filesystem_error.
std::vector<std::string> scenario_files_in(const std::string& folder);

}  // namespace rollcall::scenario
