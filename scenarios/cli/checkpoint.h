#pragma once

// Checkpoint: the results of the completed parts of a search, kept in a file.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scenarios/run/search_results.h"

namespace rollcall::cli {

class Checkpoint {
 public:
  // `search` describes the search; throws UsageError if the file belongs to another search. The file does not have to
  // exist yet.
  Checkpoint(std::string file, std::string search);

  bool has(std::uint32_t part) const { return results_.contains(part); }
  // Saves a part's result, as explore prints it in JSON. Throws viz::OutputError.
  void add(std::uint32_t part, const std::string& json);
  std::vector<scenario::NamedResult> results() const;

 private:
  std::string file_;
  std::string search_;
  std::map<std::uint32_t, std::string> results_;  // by part
};

}  // namespace rollcall::cli
