#include "viz/output_groups.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace rollcall::viz {

namespace {

// Lines fold when the text is equal, and it is the same repetition of it within their ranks.
using Text = std::pair<bool, std::string_view>;  // a warning?, the line
using Key = std::pair<Text, int>;

struct Candidate {
  OutputGroup group;
  std::size_t position = 0;  // in the program of the rank that was first
};

bool comes_first(const Candidate& a, const Candidate& b) {
  const auto order = [](const Candidate& candidate) {
    return std::tuple(candidate.group.time, candidate.position, candidate.group.ranks.first());
  };
  return order(a) < order(b);
}

class Folder {
 public:
  void add(const OutputLine& line) {
    if (line.rank != rank_) {
      rank_ = line.rank;
      position_ = 0;
      repetitions_.clear();
    }
    const Text text{line.warning, line.text};
    add(line, Key{text, repetitions_[text]++});
    ++position_;
  }

  std::vector<OutputGroup> take() {
    std::stable_sort(candidates_.begin(), candidates_.end(), comes_first);
    std::vector<OutputGroup> groups;
    groups.reserve(candidates_.size());
    for (Candidate& candidate : candidates_) {
      groups.push_back(std::move(candidate.group));
    }
    return groups;
  }

 private:
  void add(const OutputLine& line, const Key& key) {
    const auto [entry, is_new] = indexes_.try_emplace(key, candidates_.size());
    if (is_new) {
      candidates_.push_back({{{}, line.time, line.warning, line.text}, position_});
    }
    Candidate& candidate = candidates_[entry->second];
    candidate.group.ranks.insert(line.rank);
    if (std::pair(line.time, position_) < std::pair(candidate.group.time, candidate.position)) {
      candidate.group.time = line.time;
      candidate.position = position_;
    }
  }

  std::vector<Candidate> candidates_;
  std::map<Key, std::size_t> indexes_;  // into candidates_
  std::map<Text, int> repetitions_;     // of the current rank
  Rank rank_ = -1;
  std::size_t position_ = 0;
};

}  // namespace

std::vector<OutputGroup> group_output(const std::vector<OutputLine>& output) {
  Folder folder;
  for (const OutputLine& line : output) {
    folder.add(line);
  }
  return folder.take();
}

}  // namespace rollcall::viz
