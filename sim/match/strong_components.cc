#include "sim/match/strong_components.h"

#include <algorithm>

namespace rollcall::check {
namespace {

// Tarjan's algorithm. It keeps its own stack: a ring of 100,000 waiting ranks is too deep for the process's stack.
class Components {
 public:
  explicit Components(const std::vector<std::vector<std::size_t>>& next) : next_(next), nodes_(next.size()) {
    for (std::size_t root = 0; root < next_.size(); ++root) {
      if (nodes_[root].order == 0) {
        visit(root);
      }
    }
    std::ranges::sort(found_);
  }

  std::vector<std::vector<std::size_t>> take() { return std::move(found_); }

 private:
  struct Node {
    std::size_t order = 0;   // in which nodes were entered, from 1; 0: not yet
    std::size_t lowest = 0;  // the first open node that it is known to reach, by its order
    std::size_t edge = 0;    // the next one to follow
    bool is_open = false;    // its component is not complete
  };

  void enter(std::size_t at) {
    ++entered_;
    nodes_[at] = {.order = entered_, .lowest = entered_, .edge = 0, .is_open = true};
    path_.push_back(at);
    open_.push_back(at);
  }

  void visit(std::size_t root) {
    enter(root);
    while (!path_.empty()) {
      const std::size_t at = path_.back();
      Node& node = nodes_[at];
      if (node.edge < next_[at].size()) {
        const std::size_t to = next_[at][node.edge++];
        if (nodes_[to].order == 0) {
          enter(to);
        } else if (nodes_[to].is_open) {
          node.lowest = std::min(node.lowest, nodes_[to].order);
        }
        continue;
      }
      path_.pop_back();
      if (!path_.empty()) {
        Node& before = nodes_[path_.back()];
        before.lowest = std::min(before.lowest, node.lowest);
      }
      if (node.lowest == node.order) {
        close(at);
      }
    }
  }

  // Everything entered since `first` and still open reaches it, and is reached from it.
  void close(std::size_t first) {
    const auto begin = std::ranges::find(open_.rbegin(), open_.rend(), first).base() - 1;
    std::vector<std::size_t> component(begin, open_.end());
    open_.erase(begin, open_.end());
    for (const std::size_t node : component) {
      nodes_[node].is_open = false;
    }
    std::ranges::sort(component);
    found_.push_back(std::move(component));
  }

  const std::vector<std::vector<std::size_t>>& next_;
  std::vector<Node> nodes_;
  std::vector<std::size_t> path_;  // from the root to where the search is
  std::vector<std::size_t> open_;  // entered, by order
  std::size_t entered_ = 0;
  std::vector<std::vector<std::size_t>> found_;
};

}  // namespace

std::vector<std::vector<std::size_t>> strong_components(const std::vector<std::vector<std::size_t>>& next) {
  return Components(next).take();
}

}  // namespace rollcall::check
