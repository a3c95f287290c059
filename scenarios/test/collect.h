#pragma once

// Finds the scenarios to test, and selects the requested ones.

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "scenarios/format/cases.h"
#include "scenarios/test/keyword_expression.h"

namespace rollcall::scenario {

// Thrown if a requested file or case does not exist, or a folder cannot be listed. The text is one line, for the user.
struct NotFound : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// A case, or a file that cannot be read: then there is only its name, and the reason.
struct Collected {
  Case one;
  std::string unreadable;  // empty: it can be read
};

inline constexpr const char* default_folder = "scenarios";

// Returns scenario files below folders, and files as they are, each with its cases; sorted below a folder, otherwise in
// the order of the paths, without duplicates. No paths: those in the default folder, if it exists. Throws NotFound.
std::vector<Collected> collect(const std::vector<std::string>& paths);

struct Selection {
  KeywordExpression keywords{""};     // -k: words that the file's path, the case's name or a tag contains
  KeywordExpression tags{""};         // -m: words that are tags
  std::set<std::string> addresses{};  // --lf: only these; empty: all
};

// Returns the selected ones. A file that cannot be read can only be selected by its path.
std::vector<Collected> select(std::vector<Collected> all, const Selection& selection);

}  // namespace rollcall::scenario
