#pragma once

// SoloRank: a world of one rank, without an engine. Every collective completes at once, with the reference arithmetic.
// The program's calls, output and results are kept for the test.

#include <array>
#include <string>
#include <vector>

#include "sim/c10d/apply.h"
#include "sim/c10d/rank_context.h"
#include "tests/unit/c10d/lone_backend.h"

namespace rollcall::test {

class SoloRank final : public LoneBackend {
 public:
  SoloRank() {
    context_.backend = this;
    context_.scopes = &scopes_;
    context_.world = ProcessGroup(world_, 0);
    context_.steps = &steps;
    detail::current_rank = &context_;
  }
  ~SoloRank() override { detail::current_rank = nullptr; }
  SoloRank(const SoloRank&) = delete;
  SoloRank& operator=(const SoloRank&) = delete;

  StepBudget steps{1'000'000};
  std::vector<Op> issued;            // the tensors they point to may be gone
  std::vector<std::string> labels;   // the scopes of each issued op
  std::vector<std::int64_t> waited;  // asynchronous ops, by index
  std::vector<std::string> printed;
  std::vector<std::string> warnings;
  Duration computed = 0;

  const RankContext& context() const { return context_; }
  const ScopeTable& scopes() const { return scopes_; }

  Work issue(const Op& op) override {
    issued.push_back(op);
    labels.push_back(scopes_.path(op.scope));
    apply_op(op, std::array{op.tensors});
    return Work(op.group, op.rank, static_cast<std::int64_t>(issued.size()) - 1);
  }
  void wait(const Work& work) override {
    if (issued[static_cast<std::size_t>(work.seq())].async_op) {
      waited.push_back(work.seq());
    }
  }
  void compute(Duration duration) override { computed += duration; }
  ProcessGroup find_group(std::string_view name) override {
    return name == alone_.name ? ProcessGroup(alone_, 0) : ProcessGroup();
  }
  void print(std::string_view text) override { printed.emplace_back(text); }
  void warn(std::string_view text) override { warnings.emplace_back(text); }

 private:
  ScopeTable scopes_;
  GroupMembers world_{.id = world_group, .name = "world", .ranks = {0}};
  GroupMembers alone_{.id = 1, .name = "alone", .ranks = {0}};
  RankContext context_;
};

}  // namespace rollcall::test
