#pragma once

// DecisionLog: records the decisions of a run as a Schedule that repeats them. Derived classes make the decisions.

#include <cstdint>
#include <set>

#include "sim/explore/schedule.h"
#include "sim/report/rank_set.h"

namespace rollcall::sim {

// The ranks that receive from any source, as far as runs have shown.
struct Mailboxes {
  std::set<Rank> receivers{};
  std::set<std::uint64_t> open{};  // the mailboxes of Decisions::received_from_anyone

  void merge(const Mailboxes& others) {
    receivers.insert(others.receivers.begin(), others.receivers.end());
    open.insert(others.open.begin(), others.open.end());
  }
  friend bool operator==(const Mailboxes&, const Mailboxes&) = default;
};

class DecisionLog : public Decisions {
 public:
  // `orders_calls` and `draws_delays`: as in Decisions.
  DecisionLog(bool orders_calls, bool draws_delays) {
    schedule_.orders_calls = orders_calls;
    schedule_.draws_delays = draws_delays;
  }

  std::size_t decide(const Decision& decision) final;
  bool orders_calls() const final { return schedule_.orders_calls; }
  bool draws_delays() const final { return schedule_.draws_delays; }
  bool watches(Rank receiver) const final;
  void received_from_anyone(Rank receiver, std::uint64_t mailbox) final;
  bool is_open_to_anyone(std::uint64_t mailbox) const final { return known_.open.contains(mailbox); }
  void kept_order() final { has_kept_order_ = true; }
  void drew_delay() final { has_drawn_delays_ = true; }
  void looked_at_clock() final { has_looked_at_clock_ = true; }
  void ordered_by_clock() final { has_looked_at_clock_ = was_ordered_by_clock_ = true; }
  void judged_by_clock() final { was_ordered_by_clock_ = true; }
  void held_back() final { has_held_back_ = true; }
  void let_overtake() final { has_let_overtake_ = true; }

  // Called between runs: from the next run on, messages to these receivers are watched. A search whose runs
  // have shown more than it knew has to begin again.
  void know(const Mailboxes& mailboxes);
  const Mailboxes& known() const { return known_; }
  const Mailboxes& shown() const { return shown_; }
  bool knows_all_shown() const { return shown_ == known_; }

  // The decisions since the last begin().
  const Schedule& schedule() const { return schedule_; }
  bool has_looked_at_clock() const { return has_looked_at_clock_; }
  bool has_kept_order() const { return has_kept_order_; }
  bool has_drawn_delays() const { return has_drawn_delays_; }
  bool was_ordered_by_clock() const {
    return was_ordered_by_clock_ || (has_held_back_ && has_looked_at_clock_);
  }
  bool has_let_overtake() const { return has_let_overtake_; }
  // True if the run was cut.
  bool was_cut() const { return was_cut_; }
  // The ranks that had a choice.
  const RankSet& deciders() const { return deciders_; }
  // The product of all numbers of ways, or the maximum of the type.
  std::uint64_t space() const { return space_; }
  // True if decisions of this kind came up with more than one way.
  bool met(Decision::Kind kind) const { return (kinds_ & (1U << static_cast<unsigned>(kind))) != 0; }

 protected:
  // Resets the record for the next run.
  void begin();

  // Returns the way of a decision. An order may also have a single way, or none.
  virtual std::size_t choose(const Decision& decision) = 0;

 private:
  void note(const Decision& decision, std::size_t way);

  Schedule schedule_;
  Mailboxes known_;
  Mailboxes shown_;
  RankSet deciders_;
  std::uint64_t space_ = 1;
  unsigned kinds_ = 0;
  bool has_looked_at_clock_ = false;
  bool was_ordered_by_clock_ = false;
  bool has_held_back_ = false;
  bool has_let_overtake_ = false;
  bool has_drawn_delays_ = false;
  bool has_kept_order_ = false;
  bool was_cut_ = false;
};

}  // namespace rollcall::sim
