#include "sim/pipeline/orders.h"

#include <algorithm>
#include <map>
#include <set>

#include "sim/base/error.h"
#include "sim/base/expects.h"

namespace rollcall::detail {
namespace {

constexpr std::size_t active_stages_max = 3;  // _add_unshard_reshard's default

template <typename Visit>
void for_each_action(const Step& step, Visit&& visit) {
  visit(step.action);
  if (step.overlapped) {
    visit(*step.overlapped);
  }
}

// The next stages that compute something, from `at` on. An overlapped step counts as a whole.
std::vector<std::int32_t> next_stages(const RankOrder& order, std::size_t at) {
  std::vector<std::int32_t> stages;
  for (; at < order.size() && stages.size() < active_stages_max; ++at) {
    for_each_action(order[at], [&](const Action& action) {
      if (std::ranges::find(stages, action.stage) == stages.end()) {
        stages.push_back(action.stage);
      }
    });
  }
  return stages;
}

bool is_backward_of_input(Computation kind) {
  return kind == Computation::backward_input || kind == Computation::full_backward;
}

Rank rank_of(const PipelinePlan& plan, std::int32_t stage) {
  return plan.rank_of_stage[static_cast<std::size_t>(stage)];
}

// The stage that the result of a computation goes to; empty at the pipeline's ends, and for other computations.
std::optional<std::int32_t> receiver_of(const Action& action, const PipelinePlan& plan) {
  if (action.computation == Computation::forward && action.stage + 1 < plan.stages()) {
    return action.stage + 1;
  }
  if (is_backward_of_input(action.computation) && action.stage > 0) {
    return action.stage - 1;
  }
  return std::nullopt;
}

// The steps that _add_send_recv has placed so far, by rank.
class StepPlacement {
 public:
  StepPlacement(const std::vector<RankOrder>& orders, const PipelinePlan& plan)
      : plan_(plan), made_(orders.size()), done_(orders.size()) {}

  bool is_ready(Rank rank, const Step& step) const {
    return is_ready(rank, step.action) && (!step.overlapped || is_ready(rank, *step.overlapped));
  }

  void add(Rank rank, const Step& step) {
    made_[static_cast<std::size_t>(rank)].push_back(step);
    for_each_action(step, [&](const Action& action) {
      done_[static_cast<std::size_t>(rank)].insert(action);
      add_message(rank, action);
    });
  }

  std::vector<RankOrder> take() { return std::move(made_); }

 private:
  // True if the rank has what the computation needs: received, or computed on the rank itself.
  bool is_ready(Rank rank, const Action& action) const {
    const std::set<Action>& done = done_[static_cast<std::size_t>(rank)];
    const auto has = [&](std::int32_t stage, Computation kind) {
      return done.contains({stage, kind, action.microbatch});
    };
    if (action.computation == Computation::forward && action.stage != 0) {
      return has(action.stage, Computation::recv_f) || has(action.stage - 1, Computation::forward);
    }
    if (is_backward_of_input(action.computation) && action.stage + 1 != plan_.stages()) {
      return has(action.stage, Computation::recv_b) || has(action.stage + 1, Computation::backward_input) ||
             has(action.stage + 1, Computation::full_backward);
    }
    return true;
  }

  void add_message(Rank rank, const Action& action) {
    const std::optional<std::int32_t> to = receiver_of(action, plan_);
    if (!to || rank_of(plan_, *to) == rank_of(plan_, action.stage)) {
      return;
    }
    const bool is_forward = action.computation == Computation::forward;
    place(rank, {action.stage, is_forward ? Computation::send_f : Computation::send_b, action.microbatch});
    place(rank_of(plan_, *to),
          {*to, is_forward ? Computation::recv_f : Computation::recv_b, action.microbatch});
  }

  void place(Rank rank, const Action& action) {
    made_[static_cast<std::size_t>(rank)].push_back({action});
    done_[static_cast<std::size_t>(rank)].insert(action);
  }

  const PipelinePlan& plan_;
  std::vector<RankOrder> made_;
  std::vector<std::set<Action>> done_;
};

bool is_recv(Computation kind) { return kind == Computation::recv_f || kind == Computation::recv_b; }
bool is_send(Computation kind) { return kind == Computation::send_f || kind == Computation::send_b; }

// The rank at the other end of a message.
Rank peer_of(const Action& action, const PipelinePlan& plan) {
  const bool is_next = action.computation == Computation::send_f || action.computation == Computation::recv_b;
  return rank_of(plan, action.stage + (is_next ? 1 : -1));
}

// One rank's receives that wait for their place.
class Deferral {
 public:
  Deferral(const PipelinePlan& plan, Rank rank) : plan_(plan), rank_(rank) {}

  RankOrder make(const RankOrder& order) {
    for (const Step& step : order) {
      if (is_recv(step.action.computation)) {
        waiting_.push_back(step.action);
        continue;
      }
      // Of two neighbors that send to each other, the lower one receives first.
      if (is_send(step.action.computation) && rank_ < peer_of(step.action, plan_)) {
        const Rank peer = peer_of(step.action, plan_);
        place_if([&](const Action& recv) { return peer_of(recv, plan_) == peer; });
      }
      for_each_action(step, [&](const Action& action) {
        place_if([&](const Action& recv) { return is_for(recv, action); });
      });
      made_.push_back(step);
    }
    expects(waiting_.empty(), "every receive of a schedule has a computation that needs it");
    return std::move(made_);
  }

 private:
  static bool is_for(const Action& recv, const Action& computation) {
    const bool is_its_kind = recv.computation == Computation::recv_f
                                 ? computation.computation == Computation::forward
                                 : is_backward_of_input(computation.computation);
    return is_its_kind && recv.stage == computation.stage && recv.microbatch == computation.microbatch;
  }

  template <typename Predicate>
  void place_if(Predicate&& is_due) {
    for (const Action& recv : waiting_) {
      if (is_due(recv)) {
        made_.push_back({recv});
      }
    }
    std::erase_if(waiting_, is_due);
  }

  const PipelinePlan& plan_;
  Rank rank_;
  std::vector<Action> waiting_;
  RankOrder made_;
};

}  // namespace

RankOrder add_unshard_reshard(const RankOrder& order) {
  std::set<std::int32_t> active;
  RankOrder made;
  const auto reshard_if = [&](auto&& is_due) {
    for (const std::int32_t stage : std::vector<std::int32_t>(active.begin(), active.end())) {
      if (is_due(stage)) {
        active.erase(stage);
        made.push_back({{stage, Computation::reshard}});
      }
    }
  };
  for (std::size_t at = 0; at < order.size(); ++at) {
    const std::vector<std::int32_t> next = next_stages(order, at);
    reshard_if([&](std::int32_t stage) { return std::ranges::find(next, stage) == next.end(); });
    for (const std::int32_t stage : next) {
      if (active.insert(stage).second) {
        made.push_back({{stage, Computation::unshard}});
      }
    }
    made.push_back(order[at]);
  }
  reshard_if([](std::int32_t) { return true; });
  return made;
}

RankOrder add_reduce_grad(const RankOrder& order, std::int32_t microbatches) {
  std::map<std::int32_t, std::int32_t> backwards;
  RankOrder made;
  for (const Step& step : order) {
    made.push_back(step);
    for_each_action(step, [&](const Action& action) {
      const bool ends_backward = action.computation == Computation::full_backward ||
                                 action.computation == Computation::backward_weight;
      if (ends_backward && ++backwards[action.stage] == microbatches) {
        made.push_back({{action.stage, Computation::reduce_grad}});
      }
    });
  }
  return made;
}

std::vector<RankOrder> add_send_recv(const std::vector<RankOrder>& orders, const PipelinePlan& plan) {
  StepPlacement placement(orders, plan);
  std::vector<std::size_t> next(orders.size());
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t rank = 0; rank < orders.size(); ++rank) {
      const bool has_next = next[rank] < orders[rank].size();
      if (has_next && placement.is_ready(static_cast<Rank>(rank), orders[rank][next[rank]])) {
        placement.add(static_cast<Rank>(rank), orders[rank][next[rank]++]);
        progress = true;
      }
    }
  }
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    if (next[rank] < orders[rank].size()) {
      throw Error("AssertionError", "Malformed compute schedule, can't schedule sends/recvs");
    }
  }
  return placement.take();
}

std::vector<RankOrder> defer_recv(const std::vector<RankOrder>& orders, const PipelinePlan& plan) {
  std::vector<RankOrder> made;
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    made.push_back(Deferral(plan, static_cast<Rank>(rank)).make(orders[rank]));
  }
  return made;
}

}  // namespace rollcall::detail
