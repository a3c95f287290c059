#pragma once

// The results of `explore --shard`, joined.

#include <string>
#include <vector>

namespace rollcall::cli {

struct MergedResult {
  std::string json;          // as explore prints it
  std::string text;          // a summary
  bool is_expected = false;  // of every part
  std::string verdict;
  std::string kind;
};

// A result, and what messages call it.
struct NamedResult {
  std::string name;
  std::string json;
};

// Of all parts of one search, in any order. Throws UsageError for results that do not belong together.
MergedResult merge_results(const std::vector<NamedResult>& results);

// Of JSON results of one search, in any order. Throws UsageError for files that are none, or do not belong together,
// and scenario::InvalidScenario for those that cannot be read.
MergedResult merge_results(const std::vector<std::string>& files);

}  // namespace rollcall::cli
