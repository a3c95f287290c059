#pragma once

// DecisionLog: decisions that keep a record of themselves, as a Schedule that repeats them. How they are made is for
// the classes derived from it.

#include <cstdint>
#include <set>

#include "sim/explore/schedule.h"
#include "sim/report/rank_set.h"

namespace rollcall::sim {

// Who receives from anyone, as far as runs have shown it.
struct Mailboxes {
  std::set<Rank> receivers{};
  std::set<std::uint64_t> open{};  // as Decisions::received_from_anyone has them

  void merge(const Mailboxes& others) {
    receivers.insert(others.receivers.begin(), others.receivers.end());
    open.insert(others.open.begin(), others.open.end());
  }
  friend bool operator==(const Mailboxes&, const Mailboxes&) = default;
};

class DecisionLog : public Decisions {
 public:
  // `orders_calls` and `draws_delays` as Decisions has them.
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

  // Between runs: from the next one on, messages to these are watched. A search whose runs
  // have shown more than it knew has to begin again.
  void know(const Mailboxes& mailboxes);
  const Mailboxes& known() const { return known_; }
  const Mailboxes& shown() const { return shown_; }
  bool knows_all_shown() const { return shown_ == known_; }

  // What has been decided since the last begin().
  const Schedule& schedule() const { return schedule_; }
  bool has_looked_at_clock() const { return has_looked_at_clock_; }
  bool has_kept_order() const { return has_kept_order_; }
  bool has_drawn_delays() const { return has_drawn_delays_; }
  bool was_ordered_by_clock() const { return was_ordered_by_clock_; }
  // The run was cut.
  bool was_cut() const { return was_cut_; }
  // Ranks that had something to decide.
  const RankSet& deciders() const { return deciders_; }
  // The product of all numbers of ways, or the largest number there is.
  std::uint64_t space() const { return space_; }
  // Kinds that came up with more than one way.
  bool met(Decision::Kind kind) const { return (kinds_ & (1U << static_cast<unsigned>(kind))) != 0; }

 protected:
  // For the next run.
  void begin();

  // The way of a decision; of one with a single way too, or none, if it is an order.
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
  bool has_drawn_delays_ = false;
  bool has_kept_order_ = false;
  bool was_cut_ = false;
};

}  // namespace rollcall::sim
