#include "sim/explore/search_tree.h"

#include <algorithm>

#include "sim/base/encoding.h"
#include "sim/base/expects.h"
#include "sim/explore/sampler.h"

namespace rollcall::sim {
namespace {

using Node = SearchTree::Node;

// How many parts are dealt per slice: enough that no slice is much larger than the others.
constexpr std::uint64_t parts_per_slice = 16;

bool sleeps(const Node& node, std::size_t way) {
  return node.is_order &&
         std::ranges::find(node.asleep, node.contenders[way].id, &Contender::id) != node.asleep.end();
}

std::optional<std::size_t> next_way(const Node& node) {
  for (std::size_t way = 0; way < node.wanted.size(); ++way) {
    if (node.wanted[way] && !node.tried[way] && !sleeps(node, way)) {
      return way;
    }
  }
  return std::nullopt;
}

void want_all(Node& node) { node.wanted.assign(node.wanted.size(), true); }

// Wants the ways whose calls depend on the one that goes ahead.
void want_rivals(Node& node) {
  for (std::size_t way = 0; way < node.wanted.size(); ++way) {
    if (way != node.way && depend(node.contenders[way], node.call())) {
      node.wanted[way] = true;
    }
  }
}

// True if every equivalent run has the two calls in this order, too.
bool comes_before(const Contender& first, const Contender& second) {
  return is_same_process(first, second) || depend(first, second);
}

}  // namespace

void SearchTree::begin() {
  DecisionLog::begin();
  depth_ = 0;
  dealt_space_ = 1;
  dealt_number_ = 0;
  skips_ = false;
  states_.begin();
}

bool SearchTree::is_dealt() const {
  return options_.slice.count == 1 || dealt_space_ >= parts_per_slice * options_.slice.count;
}

bool SearchTree::is_ours() const {
  return options_.slice.count == 1 ||
         derived_seed(dealt_number_, 0) % options_.slice.count == options_.slice.index;
}

void SearchTree::deal(const Node& node) {
  if (!is_dealt()) {
    dealt_space_ *= node.wanted.size();
    dealt_number_ = derived_seed(dealt_number_, node.way);
  }
}

std::size_t SearchTree::choose(const Decision& decision) {
  if (!skips_ && is_dealt() && !is_ours()) {
    skips_ = true;
  }
  if (skips_) {
    return 0;
  }
  if (options_.depth_max && depth_ == *options_.depth_max) {
    is_bounded_ = true;
    return 0;
  }
  if (decision.ways == 0) {
    const Node last = open(decision);
    look_at_blocked(last);
    note_behind(last);
    return 0;
  }
  if (depth_ == path_.size() && descend(decision) == cut) {
    return cut;
  }
  expects(depth_ < path_.size(), "a run that follows a path is on it");
  expects(path_[depth_].wanted.size() == decision.ways, "a program repeats its decisions");
  settle(depth_);
  deal(path_[depth_]);
  if (compares_states() && decision.rank >= 0) {
    Encoder way;
    way(path_[depth_].way);
    learned(decision.rank, way.bytes);
  }
  return path_[depth_++].way;
}

// Opens a node that no run has visited.
std::size_t SearchTree::descend(const Decision& decision) {
  Node node = open(decision);
  if (has_been_at(decision, node)) {
    return cut;
  }
  look_at_blocked(node);
  while (node.way < decision.ways && sleeps(node, node.way)) {
    ++node.way;
  }
  if (node.way == decision.ways) {
    return cut;  // every way from here leads to where another branch has been
  }
  expects(node.way < node.wanted.size(), "a way that is taken exists");
  node.wanted[node.way] = node.tried[node.way] = true;
  path_.push_back(std::move(node));
  return path_.back().way;
}

Node SearchTree::open(const Decision& decision) {
  Node node;
  node.is_order = decision.kind == Decision::Kind::order && reduces();
  node.wanted.resize(decision.ways);
  node.tried.resize(decision.ways);
  if (!path_.empty()) {
    node.deviations = path_.back().deviations + (path_.back().way != 0 ? 1 : 0);
  }
  if (node.is_order) {
    node.contenders.assign(decision.contenders.begin(), decision.contenders.end());
    fall_asleep(node);
  }
  if (options_.deviations_max && node.deviations >= *options_.deviations_max) {
    is_bounded_ = is_bounded_ || decision.ways > 1;
  } else if (!node.is_order || !is_dealt()) {
    want_all(node);
  }
  return node;
}

void SearchTree::fall_asleep(Node& node) const {
  if (path_.empty() || compares_states()) {
    return;
  }
  const Node& before = path_.back();
  node.asleep = before.asleep;
  if (!before.is_order) {
    return;
  }
  for (std::size_t way = 0; way < before.tried.size(); ++way) {
    if (before.tried[way] && way != before.way) {
      node.asleep.push_back(before.contenders[way]);
    }
  }
  std::erase_if(node.asleep,
                [&before](const Contender& call) { return depend(call, before.contenders[before.way]); });
}

// The node's way is known: finds the earlier calls with which its call has raced.
void SearchTree::settle(std::size_t index) {
  Node& node = path_[index];
  if (node.is_settled || !node.is_order) {
    return;
  }
  node.is_settled = true;
  node.after = nodes_before(node.call(), index);
  find_races(node.call(), node.after);
  want_rivals(path_[index]);
}

// The nodes among the first `index` whose calls come before `call`.
std::vector<bool> SearchTree::nodes_before(const Contender& call, std::size_t index) const {
  std::vector<bool> after(index, false);
  for (std::size_t i = index; i-- > 0;) {
    const Node& earlier = path_[i];
    if (!after[i] && earlier.is_order && comes_before(earlier.call(), call)) {
      after[i] = true;
      for (std::size_t j = 0; j < i; ++j) {
        after[j] = after[j] || earlier.after[j];
      }
    }
  }
  return after;
}

// A call races with an earlier dependent call if nothing in between orders the two.
void SearchTree::find_races(const Contender& call, const std::vector<bool>& after) {
  for (std::size_t i = 0; i < after.size(); ++i) {
    const Node& earlier = path_[i];
    if (!after[i] || is_same_process(earlier.call(), call) || !depend(earlier.call(), call)) {
      continue;
    }
    bool is_immediate = true;
    for (std::size_t between = i + 1; between < after.size() && is_immediate; ++between) {
      is_immediate = !after[between] || !path_[between].after[i];
    }
    if (is_immediate) {
      want_turn(i, call, after);
    }
  }
}

// The calls between the two that do not come after the earlier one could have led to `call` without it. One of the
// calls that could have begun that sequence has to be tried at the earlier one's place. If none of them was there yet,
// all ways are tried, because any of them may have kept those calls from arriving.
void SearchTree::want_turn(std::size_t earlier, const Contender& call, const std::vector<bool>& after) {
  expects(earlier < after.size(), "a race is with an earlier call");
  expects(after[earlier], "a race is with a call that depends on the later one");
  Node& node = path_[earlier];
  expects(node.is_order, "only orders of calls can be turned");
  std::vector<std::size_t> led;  // nodes, in order
  std::vector<const Contender*> first;
  for (std::size_t i = earlier + 1; i < after.size(); ++i) {
    if (path_[i].is_order && !path_[i].after[earlier]) {
      const bool begins = std::ranges::none_of(led, [&](std::size_t other) { return path_[i].after[other]; });
      if (begins) {
        first.push_back(&path_[i].call());
      }
      led.push_back(i);
    }
  }
  if (std::ranges::none_of(led, [&](std::size_t other) { return after[other]; })) {
    first.push_back(&call);
  }
  std::optional<std::size_t> wanted;
  for (const Contender* each : first) {
    for (std::size_t way = 0; way < node.wanted.size(); ++way) {
      if (node.contenders[way].id == each->id) {
        if (node.wanted[way]) {
          return;
        }
        wanted = wanted.value_or(way);
      }
    }
  }
  if (wanted) {
    node.wanted[*wanted] = true;
  } else {
    want_all(node);
  }
}

// A call that is not possible yet may stay impossible: finds the races with the calls that may have made it so.
void SearchTree::look_at_blocked(const Node& node) {
  for (const Contender& call : node.contenders) {
    if (!call.ready && node.is_order) {
      find_races(call, nodes_before(call, path_.size()));
    }
  }
}

// True if another run has been in the state of this one, which is at a decision that no run has reached.
bool SearchTree::has_been_at(const Decision& decision, Node& node) {
  if (!node.is_order || !wants_state()) {
    return false;
  }
  if (decision.state.empty() || states_.bytes() > options_.state_bytes_max) {
    is_lost_ = true;
    return true;
  }
  const StateTable::Found found = states_.find(decision.state);
  node.state = found.id;
  if (found.is_new) {
    return false;
  }
  const std::optional<StateTable::Calls>& behind = states_.behind(found.id);
  expects(behind.has_value(), "no run reaches a state twice");
  race_with_all(*behind);
  if (!path_.empty()) {
    path_.back().behind.insert(behind->begin(), behind->end());
  }
  return true;
}

void SearchTree::race_with_all(const StateTable::Calls& calls) {
  for (Node& node : path_) {
    const bool races = node.is_order && std::ranges::any_of(calls, [&](StateTable::CallId id) {
                         const Contender& later = states_.call(id);
                         return !is_same_process(node.call(), later) && depend(node.call(), later);
                       });
    if (races) {
      want_all(node);
    }
  }
}

// A run has reached the node, or its end. All of the node's calls go ahead sooner or later, or are kept from doing so.
void SearchTree::note_behind(const Node& node) {
  if (compares_states() && !path_.empty()) {
    for (const Contender& call : node.contenders) {
      path_.back().behind.insert(states_.id_of(call));
    }
  }
}

// Leaves the last node: everything behind it has been seen.
void SearchTree::leave() {
  Node node = std::move(path_.back());
  path_.pop_back();
  if (!compares_states()) {
    return;
  }
  for (const Contender& call : node.contenders) {
    node.behind.insert(states_.id_of(call));
  }
  if (!path_.empty()) {
    path_.back().behind.insert(node.behind.begin(), node.behind.end());
  }
  if (node.state) {
    states_.finish(*node.state, std::move(node.behind));
  }
}

double SearchTree::share_done() const {
  double done = 0;
  double share = 1;  // of the tree, below this node
  for (const Node& node : path_) {
    std::size_t ways = 0;
    std::size_t behind = 0;
    for (std::size_t way = 0; way < node.wanted.size(); ++way) {
      const bool counts = node.wanted[way] && !sleeps(node, way);
      ways += counts ? 1 : 0;
      behind += counts && node.tried[way] && way != node.way ? 1 : 0;
    }
    share /= static_cast<double>(std::max<std::size_t>(ways, 1));
    done += share * static_cast<double>(behind);
  }
  return done;
}

bool SearchTree::advance() {
  while (!path_.empty()) {
    Node& node = path_.back();
    if (const std::optional<std::size_t> next = next_way(node)) {
      expects(!node.tried[*next], "no way is tried twice");
      node.way = *next;
      node.tried[*next] = true;
      node.is_settled = false;
      return true;
    }
    leave();
  }
  return false;
}

}  // namespace rollcall::sim
