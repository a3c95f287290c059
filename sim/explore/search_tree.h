#pragma once

// SearchTree: runs every schedule of a program once, as far as they differ. Depth first: a run follows the tree to its
// end, and the next one takes another way at the last decision that has one left.
//
// Of an order, only the ways that can matter are taken, by dynamic partial-order reduction (Flanagan and Godefroid,
// 2005) with source sets (Abdulla, Aronsson, Jonsson and Sagonas, "Optimal dynamic partial order reduction", 2014) and
// sleep sets (Godefroid, 1996): two calls on different keys give the same run in either order. The calls of a run are
// not known in advance, so runs reveal the ways worth taking: if a call depends on an earlier one of another rank, and
// nothing in between orders the two, then one of the calls that led to it must be tried at the earlier one's place.
//
// A tree that compares states ends a run where it reaches a state in which another run has been. The calls behind that
// state race with those on the way to it, regardless of what could have ordered them: if one depends on an earlier
// call, all ways are taken there (after Yang, Chen, Gopalakrishnan and Kirby, "Efficient stateful dynamic partial order
// reduction", 2008, who take fewer). A run never reaches a state twice, because ranks count their calls. So everything
// behind a state that is met again has been seen. There are no sleep sets, because they depend on how a state was
// reached.

#include <optional>
#include <vector>

#include "sim/explore/decision_log.h"
#include "sim/explore/state_table.h"

namespace rollcall::sim {

// One of `count` parts of a search: the schedules whose first decisions are dealt to it.
struct Slice {
  std::uint32_t index = 0;
  std::uint32_t count = 1;
};

class SearchTree final : public DecisionLog {
 public:
  struct Options {
    bool reduces = true;                          // otherwise every order counts as different
    std::optional<std::size_t> deviations_max{};  // from the usual way, in one run; then nothing is reduced
    Slice slice{};
    bool compares_states = false;                          // only if it reduces
    std::size_t state_bytes_max = std::size_t{256} << 20;  // for the states that it keeps
    std::optional<std::size_t> depth_max{};  // decisions of a run; those after them go the usual way
  };
  // A decision on the way to the current run.
  struct Node {
    bool is_order = false;
    std::vector<Contender> contenders{};  // of an order; the ready ones first
    std::vector<Contender> asleep{};      // tried in an earlier branch, and no later call depends on them
    std::vector<bool> wanted{};           // by way
    std::vector<bool> tried{};            // by way; includes the current one
    std::size_t way = 0;
    std::size_t deviations = 0;  // on the path to it
    std::vector<bool> after{};  // of an order: the nodes whose calls come before this one's in every such run
    bool is_settled = false;    // the way is known, and its races have been found
    std::optional<StateTable::StateId> state{};
    StateTable::Calls behind{};  // if states are compared: the calls behind it so far, as in StateTable

    const Contender& call() const { return contenders[way]; }
  };

  SearchTree(bool orders_calls, bool draws_delays, const Options& options)
      : DecisionLog(orders_calls, draws_delays), options_(options) {}

  void begin();
  // Starts over, with the receivers that runs have shown.
  void restart() {
    know(Mailboxes(shown()));
    path_.clear();
    states_ = {};
  }
  // Called after a run: moves to the next. False if there is none.
  bool advance();
  // True if the run belongs to another slice; it was made only to find the way past it.
  bool was_skipped() const { return skips_ || !is_ours(); }
  // The part of the tree that is done, as far as its ways are known by now: each node's ways count equally (Kilby,
  // Slaney, Thiebaux and Walsh, "Estimating search tree size", 2006). From 0 to 1.
  double share_done() const;
  // True if some ways were not taken because of deviations_max, or not considered because of depth_max.
  bool is_bounded() const { return is_bounded_; }
  // True if states should be compared but cannot be: there are too many, the run uses the clock, or its state is
  // unknown. Then the tree is useless.
  bool is_lost() const {
    return is_lost_ || (compares_states() && (has_looked_at_clock() || has_drawn_delays()));
  }

  bool compares_states() const override { return options_.compares_states && reduces(); }
  bool wants_state() const override {
    return compares_states() && depth_ == path_.size() && is_dealt() && is_ours();
  }
  void learned(Rank rank, std::string_view what) override { states_.learned(rank, what); }
  void holds(Rank rank, std::string_view state) override { states_.holds(rank, state); }

 protected:
  std::size_t choose(const Decision& decision) override;

 private:
  bool reduces() const { return options_.reduces && !options_.deviations_max; }
  bool is_dealt() const;
  bool is_ours() const;
  void deal(const Node& node);
  std::size_t descend(const Decision& decision);
  Node open(const Decision& decision);
  void fall_asleep(Node& node) const;
  void settle(std::size_t index);
  std::vector<bool> nodes_before(const Contender& call, std::size_t index) const;
  void find_races(const Contender& call, const std::vector<bool>& after);
  void want_turn(std::size_t earlier, const Contender& call, const std::vector<bool>& after);
  void look_at_blocked(const Node& node);
  bool has_been_at(const Decision& decision, Node& node);
  void race_with_all(const StateTable::Calls& calls);
  void note_behind(const Node& node);
  void leave();

  Options options_;
  std::vector<Node> path_;
  std::size_t depth_ = 0;           // decisions of the current run
  std::uint64_t dealt_space_ = 1;   // ways of the first decisions, which select the run's slice
  std::uint64_t dealt_number_ = 0;  // derived from the ways that they took
  bool skips_ = false;
  bool is_bounded_ = false;
  bool is_lost_ = false;
  StateTable states_;
};

}  // namespace rollcall::sim
