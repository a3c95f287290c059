#include "viz/rows/group_families.h"

#include <vector>

namespace rollcall::viz {

namespace {

using Groups = std::vector<const ReportGroup*>;

std::string stem_of(const std::string& name) {
  return name.substr(0, name.find_last_not_of("0123456789 ") + 1);
}

bool are_disjoint(const Groups& groups) {
  RankSet all;
  std::size_t members = 0;
  for (const ReportGroup* group : groups) {
    all.insert(group->ranks);
    members += group->ranks.size();
  }
  return all.size() == members;
}

}  // namespace

GroupFamilies::GroupFamilies(const Report& report) {
  std::map<std::string, Groups> families;
  for (const ReportGroup& group : report.groups) {
    families[stem_of(group.name)].push_back(&group);
  }
  for (const auto& [stem, groups] : families) {
    if (groups.size() < 2 || stem.empty() || !are_disjoint(groups)) {
      continue;
    }
    for (const ReportGroup* group : groups) {
      stems_.emplace(group->name, stem);
    }
  }
}

const std::string& GroupFamilies::of(const std::string& group) const {
  const auto found = stems_.find(group);
  return found == stems_.end() ? group : found->second;
}

}  // namespace rollcall::viz
