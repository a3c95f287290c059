#include "viz/rows/output_groups.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace rollcall::viz {

namespace {

// Lines are folded if their text is equal and is the same repetition within their ranks.
using Text = std::pair<bool, std::string_view>;  // whether it is a warning, and the line
using LineOfRank = std::pair<Text, int>;

class Folder {
 public:
  void add(const OutputLine& line) {
    if (line.rank != rank_) {
      rank_ = line.rank;
      repetitions_.clear();
    }
    const Text text{line.warning, line.text};
    const auto [entry, is_new] = indexes_.try_emplace(LineOfRank{text, repetitions_[text]++}, groups_.size());
    if (is_new) {
      groups_.push_back({{}, line.time, line.warning, line.text});
    }
    OutputGroup& group = groups_[entry->second];
    group.ranks.insert(line.rank);
    group.time = std::min(group.time, line.time);
  }

  std::vector<OutputGroup> take() {
    std::ranges::stable_sort(groups_, {}, &OutputGroup::time);
    return std::move(groups_);
  }

 private:
  std::vector<OutputGroup> groups_;            // by rank, then in the order in which the first printed
  std::map<LineOfRank, std::size_t> indexes_;  // into groups_
  std::map<Text, int> repetitions_;            // of the current rank
  Rank rank_ = -1;
};

}  // namespace

std::vector<OutputGroup> group_output(const std::vector<OutputLine>& output) {
  Folder folder;
  for (const OutputLine& line : output) {
    folder.add(line);
  }
  return folder.take();
}

std::vector<OutputLine> lines_of(const std::vector<OutputGroup>& groups) {
  std::vector<OutputLine> lines;
  for (const OutputGroup& group : groups) {
    for (const Rank rank : group.ranks.to_vector()) {
      lines.push_back({rank, group.time, group.warning, group.text});
    }
  }
  std::ranges::stable_sort(lines, {}, &OutputLine::rank);
  return lines;
}

}  // namespace rollcall::viz
