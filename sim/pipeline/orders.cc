#include "sim/pipeline/orders.h"

#include <algorithm>
#include <deque>
#include <map>

#include <fmt/core.h>

#include "sim/base/error.h"
#include "sim/base/expects.h"

namespace rollcall::detail {
namespace {

// Counts the microbatches of each stage, one count per kind of computation.
class Counter {
 public:
  std::int32_t next(std::int32_t stage) { return counts_[stage]++; }
  std::int32_t of(std::int32_t stage) const {
    const auto found = counts_.find(stage);
    return found == counts_.end() ? 0 : found->second;
  }

 private:
  std::map<std::int32_t, std::int32_t> counts_;
};

// ScheduleLoopedBFS: every stage's microbatches in a row, and the backwards in reverse.
RankOrder looped_bfs_order(const PipelinePlan& plan, Rank rank) {
  const std::vector<std::int32_t>& stages = plan.stages_of_rank[static_cast<std::size_t>(rank)];
  RankOrder order;
  for (const std::int32_t stage : stages) {
    for (std::int32_t microbatch = 0; microbatch < plan.shape.microbatches; ++microbatch) {
      order.push_back({{stage, Computation::forward, microbatch}});
    }
  }
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    for (std::int32_t microbatch = plan.shape.microbatches; microbatch-- > 0;) {
      order.push_back({{*stage, Computation::full_backward, microbatch}});
    }
  }
  return order;
}

// _PipelineScheduleRuntime rounds: how many microbatches of a stage follow each other in the interleaved schedules.
// Throws ValueError when the rounds are not even.
std::int32_t microbatches_per_round(const PipelineShape& shape) {
  const std::int32_t rounds = std::max(1, shape.microbatches / shape.ranks);
  if (shape.microbatches % rounds != 0) {
    throw ValueError(
        fmt::format("{} requires the number of microbatches to be a multiple of the number of rounds ({}), "
                    "but got {}.",
                    shape.schedule == ScheduleKind::interleaved_1f1b ? "Interleaved 1F1B" : "Zero bubble",
                    rounds, shape.microbatches));
  }
  return shape.microbatches / rounds;
}

// _get_1f1b_rank_ops, for ScheduleInterleaved1F1B and ScheduleInterleavedZeroBubble: a warm-up of forwards, then
// alternating forwards and backwards, then the remaining backwards.
class InterleavedOrder {
 public:
  InterleavedOrder(const PipelinePlan& plan, Rank rank)
      : shape_(plan.shape),
        rank_(rank),
        zero_bubble_(plan.shape.schedule == ScheduleKind::interleaved_zero_bubble),
        per_round_(microbatches_per_round(plan.shape)),
        warmup_(warmup_length()) {}

  RankOrder make() {
    const std::int32_t forwards = shape_.stages_per_rank * shape_.microbatches;
    for (std::int32_t op = 0; op < forwards + warmup_; ++op) {
      if (op < forwards) {
        const std::int32_t stage = forward_stage(op);
        order_.push_back({{stage, Computation::forward, forward_.next(stage)}});
      }
      if (op >= warmup_) {
        add_backward(op);
      }
    }
    while (zero_bubble_ && weights_ < backwards_.size()) {
      add_weight();
    }
    return std::move(order_);
  }

 private:
  // _get_warmup_ops: the last rank starts its backwards after all stages but one had a round.
  std::int32_t warmup_length() const {
    const std::int32_t per_hop = zero_bubble_ ? 1 : 2;
    const std::int32_t hops = static_cast<std::int32_t>(shape_.ranks - 1 - rank_);
    return std::min((shape_.stages_per_rank - 1) * per_round_ + per_hop * hops,
                    shape_.microbatches * shape_.stages_per_rank);
  }

  std::int32_t stage_at(std::int32_t local) const { return local * shape_.ranks + rank_; }
  std::int32_t forward_stage(std::int32_t op) const {
    return stage_at(op / per_round_ % shape_.stages_per_rank);
  }
  std::int32_t backward_stage(std::int32_t op) const {
    return stage_at(shape_.stages_per_rank - 1 - (op - warmup_) / per_round_ % shape_.stages_per_rank);
  }

  void add_backward(std::int32_t op) {
    const std::int32_t stage = backward_stage(op);
    const Computation kind = zero_bubble_ ? Computation::backward_input : Computation::full_backward;
    order_.push_back({{stage, kind, backward_.next(stage)}});
    backwards_.push_back(op);
    // The first `rank` weight updates wait for the cool-down, where they fill the bubble.
    if (zero_bubble_ && op - warmup_ >= rank_) {
      add_weight();
    }
  }

  void add_weight() {
    const std::int32_t stage = backward_stage(backwards_[weights_++]);
    order_.push_back({{stage, Computation::backward_weight, weight_.next(stage)}});
  }

  const PipelineShape& shape_;
  Rank rank_;
  bool zero_bubble_;
  std::int32_t per_round_;
  std::int32_t warmup_;
  Counter forward_;
  Counter backward_;
  Counter weight_;
  std::vector<std::int32_t> backwards_;  // the ops that had a backward
  std::size_t weights_ = 0;
  RankOrder order_;
};

// ScheduleZBVZeroBubble. Written for at least 2 * ranks - 1 microbatches; with fewer, the surplus ones are left out.
class ZbvOrder {
 public:
  ZbvOrder(const PipelinePlan& plan, Rank rank)
      : ranks_(plan.shape.ranks),
        rank_(rank),
        wanted_(plan.shape.microbatches),
        microbatches_(std::max(2 * plan.shape.ranks - 1, plan.shape.microbatches)),
        first_(plan.stages_of_rank[static_cast<std::size_t>(rank)].front()),
        second_(plan.stages_of_rank[static_cast<std::size_t>(rank)].back()) {}

  RankOrder make() {
    warm_up();
    while (forward_.of(second_) < forward_.of(first_) || forward_.of(first_) < microbatches_) {
      if (forward_.of(first_) < microbatches_) {
        forward(first_);
      }
      backward(first_);
      weight(first_);
      forward(second_);
      backward(second_);
      weight(second_);
    }
    cool_down();
    return std::move(order_);
  }

 private:
  void warm_up() {
    for (Rank i = 0; i < 2 * (ranks_ - rank_) - 1; ++i) {
      forward(first_);
    }
    for (Rank i = 0; i < rank_; ++i) {
      forward(second_);
      forward(first_);
    }
    for (Rank i = 0; i < ranks_ - rank_; ++i) {
      forward(second_);
      backward(second_);
      weight(second_);
    }
  }

  void cool_down() {
    for (Rank i = 0; i < rank_; ++i) {
      backward(first_);
      backward(second_);
    }
    for (Rank i = 0; i < ranks_ - rank_; ++i) {
      backward(first_);
      weight(first_);
    }
    for (const std::int32_t stage : {second_, first_}) {
      while (weight_.of(stage) < backward_.of(stage)) {
        weight(stage);
      }
    }
  }

  void forward(std::int32_t stage) { add(stage, Computation::forward, forward_); }
  void backward(std::int32_t stage) { add(stage, Computation::backward_input, backward_); }
  void weight(std::int32_t stage) { add(stage, Computation::backward_weight, weight_); }
  void add(std::int32_t stage, Computation kind, Counter& counter) {
    if (const std::int32_t microbatch = counter.next(stage); microbatch < wanted_) {
      order_.push_back({{stage, kind, microbatch}});
    }
  }

  Rank ranks_;
  Rank rank_;
  std::int32_t wanted_;
  std::int32_t microbatches_;
  std::int32_t first_;
  std::int32_t second_;
  Counter forward_;
  Counter backward_;
  Counter weight_;
  RankOrder order_;
};

// ScheduleDualPipeV, based on DeepSeek's DualPipe: eight parts, the fourth of which overlaps a forward of one stage
// with a backward of the other.
class DualPipeVOrder {
 public:
  DualPipeVOrder(const PipelinePlan& plan, Rank rank)
      : ranks_(plan.shape.ranks),
        rank_(rank),
        microbatches_(plan.shape.microbatches),
        first_(plan.stages_of_rank[static_cast<std::size_t>(rank)].front()),
        second_(plan.stages_of_rank[static_cast<std::size_t>(rank)].back()) {}

  RankOrder make() {
    fill();
    overlap();
    drain();
    return std::move(order_);
  }

 private:
  Rank after() const { return ranks_ - rank_ - 1; }

  void fill() {
    for (Rank i = 0; i < 2 * after(); ++i) {
      forward(first_);
    }
    for (Rank i = 0; i < rank_ + 1; ++i) {
      forward(first_);
      forward(second_);
    }
    for (Rank i = 0; i < after(); ++i) {
      backward(second_, Computation::backward_input);
      weight();
      forward(second_);
    }
  }

  void overlap() {
    for (std::int32_t i = 0; i < microbatches_ - 2 * ranks_ + rank_ + 1; ++i) {
      if (i == 0 && rank_ == ranks_ - 1) {  // whose first pair would only make the bubble larger
        forward(first_);
        backward(second_, Computation::full_backward);
      } else {
        forward_and_backward(first_, second_);
      }
      forward_and_backward(second_, first_);
    }
    for (Rank i = 0; i < after(); ++i) {
      backward(second_, Computation::full_backward);
      forward_and_backward(second_, first_);
    }
  }

  // In the second half backwards of inputs go first, and those of weights fill the bubble.
  void drain() {
    Computation kind = Computation::full_backward;
    for (Rank i = 0; i < rank_ + 1; ++i) {
      const bool is_half = i == (rank_ + 1) / 2;
      if (is_half && rank_ % 2 == 1) {
        kind = Computation::backward_input;
      }
      backward(second_, kind);
      if (is_half && rank_ % 2 == 0) {
        kind = Computation::backward_input;
      }
      backward(first_, kind);
    }
    for (Rank i = 0; i < after(); ++i) {
      weight();
      backward(first_, kind);
    }
    for (Rank i = 0; i < rank_ + 1; ++i) {
      weight();
    }
  }

  void forward(std::int32_t stage) {
    order_.push_back({{stage, Computation::forward, forward_.next(stage)}});
  }
  void backward(std::int32_t stage, Computation kind) {
    const std::int32_t microbatch = backward_.next(stage);
    order_.push_back({{stage, kind, microbatch}});
    if (kind == Computation::backward_input) {
      weights_.push_back({stage, Computation::backward_weight, microbatch});
    }
  }
  void weight() {
    if (!weights_.empty()) {
      order_.push_back({weights_.front()});
      weights_.pop_front();
    }
  }
  void forward_and_backward(std::int32_t forward_stage, std::int32_t backward_stage) {
    const Action forward{forward_stage, Computation::forward, forward_.next(forward_stage)};
    order_.push_back(
        {forward, Action{backward_stage, Computation::full_backward, backward_.next(backward_stage)}});
  }

  Rank ranks_;
  Rank rank_;
  std::int32_t microbatches_;
  std::int32_t first_;
  std::int32_t second_;
  Counter forward_;
  Counter backward_;
  std::deque<Action> weights_;  // not run yet
  RankOrder order_;
};

}  // namespace

RankOrder compute_order(const PipelinePlan& plan, Rank rank) {
  switch (plan.shape.schedule) {
    case ScheduleKind::looped_bfs:
      return looped_bfs_order(plan, rank);
    case ScheduleKind::interleaved_1f1b:
    case ScheduleKind::interleaved_zero_bubble:
      return InterleavedOrder(plan, rank).make();
    case ScheduleKind::zbv_zero_bubble:
      return ZbvOrder(plan, rank).make();
    case ScheduleKind::dual_pipe_v:
      return DualPipeVOrder(plan, rank).make();
    case ScheduleKind::gpipe:
    case ScheduleKind::one_f_one_b:
      break;
  }
  return {};
}

}  // namespace rollcall::detail
