#include "sim/explore/decision_log.h"

#include <algorithm>
#include <limits>

#include "sim/base/expects.h"

namespace rollcall::sim {
namespace {

bool has_rival(const Contender& call, std::span<const Contender> others) {
  return std::ranges::any_of(others, [&](const Contender& other) {
    return other.id != call.id && other.ready && depend(call, other);
  });
}

}  // namespace

void DecisionLog::begin() {
  schedule_.decisions = 0;
  schedule_.deviations.clear();
  deciders_ = {};
  space_ = 1;
  kinds_ = 0;
  has_looked_at_clock_ = was_ordered_by_clock_ = has_held_back_ = has_let_overtake_ = false;
  has_drawn_delays_ = has_kept_order_ = false;
  was_cut_ = false;
}

void DecisionLog::know(const Mailboxes& mailboxes) {
  known_ = shown_ = mailboxes;
  schedule_.receivers.assign(known_.receivers.begin(), known_.receivers.end());
}

bool DecisionLog::watches(Rank receiver) const {
  return std::ranges::binary_search(schedule_.receivers, receiver);
}

void DecisionLog::received_from_anyone(Rank receiver, std::uint64_t mailbox) {
  shown_.receivers.insert(receiver);
  shown_.open.insert(mailbox);
}

std::size_t DecisionLog::decide(const Decision& decision) {
  if (was_cut_) {
    return 0;  // the run is about to end
  }
  expects(decision.contenders.size() >= decision.ways || decision.kind != Decision::Kind::order,
          "calls that can go first are among those that contend");
  if (decision.ways <= 1 && decision.kind != Decision::Kind::order) {
    return 0;
  }
  const std::size_t way = choose(decision);
  if (way == cut) {
    was_cut_ = true;
    return cut;
  }
  expects(way < decision.ways || decision.ways == 0, "a way that is taken exists");
  if (decision.ways > 1) {
    note(decision, way);
  }
  return way;
}

void DecisionLog::note(const Decision& decision, std::size_t way) {
  const bool is_order = decision.kind == Decision::Kind::order;
  if (way != 0) {
    schedule_.deviations.push_back({.index = schedule_.decisions,
                                    .kind = decision.kind,
                                    .rank = is_order ? decision.contenders[way].rank : decision.rank,
                                    .ways = decision.ways,
                                    .way = way});
  }
  ++schedule_.decisions;
  kinds_ |= 1U << static_cast<unsigned>(decision.kind);
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  space_ = space_ > most / decision.ways ? most : space_ * decision.ways;
  if (!is_order) {
    deciders_.insert(decision.rank);
    return;
  }
  for (const Contender& call : decision.contenders.first(decision.ways)) {
    if (has_rival(call, decision.contenders)) {
      deciders_.insert(call.rank);
    }
  }
}

}  // namespace rollcall::sim
