#pragma once

// Groups that are to their ranks what others are to theirs: dp0 and dp1 of a mesh. Ranks that made the same calls
// on different groups of a family did the same.

#include <map>
#include <string>

#include "sim/report/report.h"

namespace rollcall::viz {

class GroupFamilies {
 public:
  // Groups of one name but for the number at its end, without a common member, are a family.
  explicit GroupFamilies(const Report& report);

  // "dp" of "dp3"; a group without a family stands for itself.
  const std::string& of(const std::string& group) const;

 private:
  std::map<std::string, std::string> stems_;  // by name
};

}  // namespace rollcall::viz
