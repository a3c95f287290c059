#include "scenarios/run/foresight.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include <fmt/core.h>

#include "scenarios/run/interpreter.h"
#include "scenarios/run/run_state.h"
#include "sim/c10d/observer.h"
#include "sim/c10d/rank_context.h"

namespace rollcall::scenario {
namespace {

constexpr std::int64_t steps_max = 200'000;

// Notes what its rank calls, and completes it on the spot.
class NotingBackend final : public Backend {
 public:
  NotingBackend(Backend& engine, std::map<Rank, check::RankProgram>& programs)
      : engine_(engine), programs_(programs) {}

  const BackendTraits& traits() const override { return engine_.traits(); }

  Work issue(const Op& op) override {
    check::ProgramCall& call = note(op.kind, op.group, op.scope);
    call.is_root = has_root(op.kind) && op.root == op.rank;
    if (is_point_to_point(op.kind)) {
      call.peer = global_rank(op.group, op.root);
      call.tag = traits().has_tags ? op.tag : 0;
    }
    if (has_tensor(op.kind)) {
      call.numel = op.numel;
      call.dtype = to_string(op.dtype);
    }
    return Work(op.group, op.rank, call.seq);
  }
  void wait(const Work&) override {}
  void wait_for(const Work&, Duration) override {}
  void wait_any(std::span<const Work>) override {}
  bool is_completed(const Work&) override { return true; }
  Rank source_of(const Work&) override { return 0; }
  void compute(Duration) override {}
  // Groups are made for this rank alone.
  ProcessGroup manage(GroupCall call) override {
    note(call.op.kind, call.op.group, call.op.scope);
    for (RankList& ranks : call.ranks) {
      if (std::ranges::find(ranks, this_rank().rank) != ranks.end()) {
        const auto id = static_cast<GroupId>(first_made_group + made_.size());
        const std::string name = call.name.empty() ? fmt::format("g{}", made_.size() + 1) : call.name;
        made_.push_back({id, name, std::move(ranks)});
        names_[id] = name;
        members_[id] = &made_.back();
        return {made_.back(), made_.back().rank_of(this_rank().rank)};
      }
    }
    return ProcessGroup::non_member();
  }
  void monitored_barrier(const Op&, const MonitoredBarrierLimits&) override {}
  StoreReply store(const StoreCall& call) override {
    const bool sets = call.kind == StoreCall::Kind::set || call.kind == StoreCall::Kind::add ||
                      call.kind == StoreCall::Kind::compare_set;
    if (sets) {
      program().sets.push_back(call.keys.front());
    }
    return {call.want.value_or("0"), 0};
  }
  Time now() const override { return 0; }
  Streams* streams() override { return nullptr; }
  Observer& observer() override { return nobody_; }

  ProcessGroup find_group(std::string_view name) override {
    const ProcessGroup group = engine_.find_group(name);
    if (group) {
      names_[group.id()] = name;
      members_[group.id()] = &group.members();
    }
    return group;
  }

 private:
  static constexpr std::size_t first_made_group = 1'000'000;  // far from those of the run

  check::ProgramCall& note(OpKind kind, GroupId group, ScopeId scope) {
    const int channel = is_about_groups(kind) ? 2 + static_cast<int>(kind) : is_point_to_point(kind) ? 1 : 0;
    std::vector<check::ProgramCall>& calls = program().calls;
    calls.push_back({.kind = kind, .group = group_name(group), .seq = next_[{group, channel}]++});
    calls.back().label = this_rank().scopes->path(scope);
    return calls.back();
  }

  // -1: anyone.
  Rank global_rank(GroupId group, Rank inside) const {
    const auto found = members_.find(group);
    return inside < 0 || found == members_.end() ? inside
                                                 : found->second->ranks[static_cast<std::size_t>(inside)];
  }

  check::RankProgram& program() { return programs_[this_rank().rank]; }

  std::string group_name(GroupId group) const {
    const auto found = names_.find(group);
    return found == names_.end() ? "world" : found->second;
  }

  Backend& engine_;
  Observer nobody_;  // what is noted happens in the run itself
  std::map<Rank, check::RankProgram>& programs_;
  std::map<std::pair<GroupId, int>, std::int64_t> next_;
  std::deque<GroupMembers> made_;  // never moves: handles point into it
  std::map<GroupId, std::string> names_;
  std::map<GroupId, const GroupMembers*> members_;  // of all but the world
};

}  // namespace

std::vector<check::RankProgram> foresee(const Scenario& scenario, const std::vector<Rank>& ranks) {
  std::map<Rank, check::RankProgram> foreseen;
  sim::Options options = scenario.options;
  options.timeout = 0;
  options.limits.ops = std::min(options.limits.ops, steps_max);
  options.decorate = [&](Backend& engine) { return std::make_unique<NotingBackend>(engine, foreseen); };
  RunState state;
  sim::run(options, [&](Rank rank) {
    if (std::ranges::find(ranks, rank) != ranks.end()) {
      run_rank(scenario, rank, state);
    }
  });
  std::vector<check::RankProgram> programs;
  for (auto& [rank, program] : foreseen) {
    program.rank = rank;
    programs.push_back(std::move(program));
  }
  return programs;
}

}  // namespace rollcall::scenario
