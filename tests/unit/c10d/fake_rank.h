#pragma once

// FakeRank: one rank without a world. It installs itself as the current rank for its lifetime and
// answers every collective at once with the next of the given answers, so that a test sees what a
// program issues and decides what it gets back.

#include <deque>
#include <string>
#include <vector>

#include "sim/c10d/arguments.h"
#include "sim/c10d/rank_context.h"
#include "tests/unit/c10d/lone_backend.h"

namespace rollcall::test {

class FakeRank final : public LoneBackend {
 public:
  explicit FakeRank(Rank rank = 0, Rank world_size = 2) {
    for (Rank r = 0; r < world_size; ++r) {
      world_members_.ranks.push_back(r);
    }
    context_.backend = this;
    context_.scopes = &scopes_;
    context_.world = ProcessGroup(world_members_, rank);
    context_.rank = rank;
    stand_for(TorchRelease::v1_13);
    detail::current_rank = &context_;
  }
  ~FakeRank() override { detail::current_rank = nullptr; }
  FakeRank(const FakeRank&) = delete;
  FakeRank& operator=(const FakeRank&) = delete;

  // Sets the release whose rules apply.
  void stand_for(TorchRelease torch) { context_.torch = &traits_of(torch); }

  // The values that the next collectives write into their tensor. Once these are used up, collectives do not change it.
  std::deque<double> answers;
  // Adds a group of these global ranks, besides the world.
  void add_group(std::string name, std::vector<Rank> ranks) {
    groups_.push_back({static_cast<GroupId>(groups_.size() + 1), std::move(name), std::move(ranks)});
  }

  std::vector<Op> issued;
  std::vector<double> sent;          // of each issued op: the first element of its input
  std::vector<std::int64_t> waited;  // the index of each op that was waited for
  std::vector<std::size_t> batches;  // the sizes of batches of messages
  Rank source = -1;                  // the sender for receives from any source, inside the group
  std::vector<std::string> warnings;
  std::vector<std::string> printed;

  // "join.count", ...: the innermost scope of each issued op.
  std::vector<std::string> scopes() const {
    std::vector<std::string> names;
    for (const Op& op : issued) {
      names.emplace_back(scopes_.name(op.scope));
    }
    return names;
  }
  const ScopeTable& scope_table() const { return scopes_; }

  std::string backend_name = "gloo";

  const BackendTraits& traits() const override { return traits_of(backend_name); }
  Work issue(const Op& op) override {
    const GroupMembers& members = op.group == world_group ? world_members_ : groups_[op.group - 1];
    if (const std::optional<Error> error = argument_error(traits(), op, members.size(), *context_.torch)) {
      raise(*error);
    }
    issued.push_back(op);
    Storage* input = op.tensors.input;
    sent.push_back(input != nullptr && input->form != Storage::Form::meta ? decode(input->at(0), op.dtype)
                                                                          : 0);
    if (input != nullptr && !answers.empty()) {
      input->set_uniform(encode(answers.front(), op.dtype));
      answers.pop_front();
    }
    return Work(op.group, op.rank, static_cast<std::int64_t>(issued.size()) - 1);
  }
  void wait(const Work& work) override { waited.push_back(work.seq()); }
  std::vector<Work> issue_batch(std::span<const Op> ops) override {
    batches.push_back(ops.size());
    return Backend::issue_batch(ops);
  }
  Rank source_of(const Work&) override { return source; }
  ProcessGroup find_group(std::string_view group) override {
    for (const GroupMembers& members : groups_) {
      if (members.name == group) {
        return ProcessGroup(members, members.rank_of(context_.rank));
      }
    }
    return {};
  }
  void print(std::string_view text) override { printed.emplace_back(text); }
  void warn(std::string_view text) override { warnings.emplace_back(text); }

 private:
  ScopeTable scopes_;
  GroupMembers world_members_{.id = world_group, .name = "world", .ranks = {}};
  std::deque<GroupMembers> groups_;  // a deque: handles point into it
  RankContext context_;
};

}  // namespace rollcall::test
