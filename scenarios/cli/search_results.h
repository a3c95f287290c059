#pragma once

// The results of `explore --shard`, joined.

#include <string>
#include <vector>

namespace rollcall::cli {

struct MergedResult {
  std::string json;  // as explore prints it
  std::string text;  // a summary
  bool is_expected = false;
};

// Of JSON results of one search, in any order. Throws UsageError for files that are none, or do not belong together.
MergedResult merge_results(const std::vector<std::string>& files);

}  // namespace rollcall::cli
