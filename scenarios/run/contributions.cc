#include "scenarios/run/contributions.h"

namespace rollcall::scenario {

std::vector<std::pair<Rank, double>> Contributions::to(Rank rank, const std::string& tensor) {
  const auto made = latest_.find({rank, tensor});
  std::vector<std::pair<Rank, double>> given;
  if (made == latest_.end() || !told_.insert(made->second.call).second) {
    return given;
  }
  for (const auto& [key, entry] : latest_) {
    const bool is_new = given.empty() || given.back().first != key.first;
    if (entry.call == made->second.call && is_new) {
      given.emplace_back(key.first, entry.value);
    }
  }
  return given;
}

}  // namespace rollcall::scenario
