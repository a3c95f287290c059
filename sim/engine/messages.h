#pragma once

// Messages: sends and receives in flight. Like collectives, they are matched by a pure matcher and completed by
// events; unlike collectives, each is between two ranks, so messages that arrive at the same time share one event.

#include <memory>
#include <utility>
#include <vector>

#include "sim/engine/causes.h"
#include "sim/engine/run.h"

namespace rollcall::sim {

class Messages {
 public:
  using Pair = std::pair<check::MessageId, check::MessageId>;  // (send, receive)

  // Both are borrowed.
  Messages(Run& run, CostModel& cost);

  // The run has one more group. `keeps_batches_apart`: batches use another communicator than other messages.
  void add_group(bool keeps_batches_apart);

  // The group's matcher; created at the first use.
  check::MessageMatcher& of(GroupId group) {
    const std::unique_ptr<check::MessageMatcher>& messages = of_[group];
    return messages != nullptr ? *messages : open(group);
  }
  bool is_current(const Work& work) {
    return of(work.group()).is_current(work.message(), work.rank(), work.seq());
  }

  // Gives a call its number. Throws the error that torch raises for it.
  check::MessageId plan(const Op& op);
  // From now on the message can be matched. Returns it.
  const check::Message& post(GroupId group, check::MessageId id);
  // Schedules the arrival of every newly matched pair.
  void schedule();
  // Calls `deliver(group, send, receive)` for every pair of an event that schedule() has added.
  template <typename Deliver>
  void arrive(std::int64_t number, Deliver&& deliver) {
    Delivery& delivery = deliveries_[static_cast<std::size_t>(number)];
    expects(!delivery.pairs.empty(), "something arrives");
    for (const auto& [send, receive] : delivery.pairs) {
      deliver(delivery.group, send, receive);
    }
    delivery.pairs.clear();
    free_.push_back(static_cast<std::size_t>(number));
  }
  // Delivers the data into the receiver's tensor. Returns the fates of the two ends, the sender's first.
  std::pair<check::Fate, check::Fate> exchange(GroupId group, check::MessageId send,
                                               check::MessageId receive);

  // A rank no longer waits for its message. If the message is on its way, it arrives all the same and needs its tensor.
  void give_up(const check::RankStatus& status);
  // The rank is dead: its unmatched messages are withdrawn.
  void withdraw(Rank rank);

  // Null unless Decisions decides when messages arrive.
  Causes* causes() { return causes_.get(); }
  const Causes* causes() const { return causes_.get(); }

  // For deciding in which order messages arrive at ranks that receive from any source.
  bool is_watching() const;
  bool is_watching(GroupId group) const { return of_[group] != nullptr && of_[group]->is_watching(); }
  void let_arrive(GroupId group, Rank source, Rank receiver);
  // Calls `finish(group, receive, fate)` for receives whose data was held back and has arrived. True if there was one.
  template <typename Finish>
  bool hand_out(Finish&& finish) {
    bool any = false;
    for (GroupId group = 0; group < of_.size(); ++group) {
      if (is_watching(group)) {
        for (const auto& [receive, fate] : std::exchange(of_[group]->arrived(), {})) {
          finish(group, receive, fate);
          any = true;
        }
      }
    }
    return any;
  }

 private:
  // The messages that arrive at one time in one group. The vectors are reused.
  struct Delivery {
    GroupId group = 0;
    std::vector<Pair> pairs;
  };

  [[gnu::noinline]] check::MessageMatcher& open(GroupId group);
  std::size_t take_delivery(GroupId group);

  Run& run_;
  CostModel& cost_;
  std::vector<std::unique_ptr<check::MessageMatcher>> of_;  // by GroupId; null before the first message
  std::vector<bool> keeps_batches_apart_;                   // by GroupId
  std::unique_ptr<Causes> causes_;
  std::vector<GroupId> posted_;  // groups with messages posted since the last quiescence
  std::vector<Delivery> deliveries_;
  std::vector<std::size_t> free_;  // of deliveries_
};

}  // namespace rollcall::sim
