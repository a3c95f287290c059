#pragma once

// Joins the results of `explore --shard`.

#include <string>
#include <vector>

#include "sim/report/finding_kinds.h"

namespace rollcall::cli {

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

// Joins all parts of one search, in any order. Throws UsageError for results that do not belong together.
MergedResult merge_results(const std::vector<NamedResult>& results);

// Joins files with JSON results of one search, in any order. Throws UsageError for files that are not results, or do
// not belong together, and scenario::InvalidScenario for those that cannot be read.
MergedResult merge_results(const std::vector<std::string>& files);

}  // namespace rollcall::cli
