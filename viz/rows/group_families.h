#pragma once

// Groups that play the same role for different ranks: dp0 and dp1 of a mesh. Ranks that made the same calls
// on different groups of a family did the same.

#include <map>
#include <string>

#include "sim/report/report.h"

namespace rollcall::viz {

class GroupFamilies {
 public:
  // Groups whose names differ only in the number at the end, and that have no common member, are a family.
  explicit GroupFamilies(const Report& report);

  // Returns "dp" for "dp3"; a group without a family is its own family.
  const std::string& of(const std::string& group) const;

 private:
  std::map<std::string, std::string> stems_;  // by name
};

}  // namespace rollcall::viz
