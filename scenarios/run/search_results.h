#pragma once

// Joins the results of `explore --shard`.

#include <stdexcept>
#include <string>
#include <vector>

#include "sim/report/finding_kinds.h"

namespace rollcall::scenario {

struct MergedResult {
  std::string json;          // as explore prints it
  std::string text;          // a summary
  bool is_expected = false;  // every part is as expected
  std::string verdict;
  FindingKind kind = FindingKind::ok;
};

// A result, and its name in messages.
struct NamedResult {
  std::string name;
  std::string json;
};

// What is given are not the parts of one search.
struct NotOneSearch : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// Joins all parts of one search, in any order. Throws NotOneSearch.
MergedResult merge_results(const std::vector<NamedResult>& results);

// Joins files with JSON results of one search, in any order. Throws NotOneSearch, and InvalidScenario for files that
// cannot be read.
MergedResult merge_results(const std::vector<std::string>& files);

}  // namespace rollcall::scenario
