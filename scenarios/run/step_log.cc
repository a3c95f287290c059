#include "scenarios/run/step_log.h"

#include <memory>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "scenarios/format/scenario.h"
#include "scenarios/run/interpreter.h"
#include "scenarios/run/run_state.h"
#include "sim/c10d/forwarding_backend.h"
#include "sim/c10d/rank_context.h"
#include "sim/engine/simulate.h"

namespace rollcall::scenario {
namespace {

class StepWriter final : public ForwardingBackend {
 public:
  StepWriter(Backend& inner, StepLog& log) : ForwardingBackend(inner), log_(log) {}

  Work issue(const Op& op) override {
    const Work work = inner().issue(op);
    const auto own = log_.ranks.find(this_rank().rank);
    if (own != log_.ranks.end() && !is_point_to_point(op.kind)) {
      const ScopeTable& scopes = *this_rank().scopes;
      const std::string_view pairing = scopes.pairing_name(scopes.pairing(op.scope));
      std::string text(to_string(op.kind));
      text += has_tensor(op.kind) ? fmt::format(" {} {}", op.numel, to_string(op.dtype)) : "";
      const bool is_presence = pairing == "join.presence";
      own->second.push_back({std::move(text), scopes.path(op.scope), op.group, work.seq(), op.shadow,
                             is_presence, is_presence || pairing == "join.terminate"});
    }
    return work;
  }
  ProcessGroup find_group(std::string_view name) override { return known(inner().find_group(name)); }
  ProcessGroup manage(GroupCall call) override { return known(inner().manage(std::move(call))); }

 private:
  ProcessGroup known(const ProcessGroup& group) {
    if (group) {
      log_.groups[group.id()] = group.name();
    }
    return group;
  }

  StepLog& log_;
};

}  // namespace

const Steps& StepLog::of(Rank rank) const {
  static const Steps no_steps;
  const auto found = ranks.find(rank);
  return found == ranks.end() ? no_steps : found->second;
}

std::string StepLog::group_name(GroupId group) const {
  const auto found = groups.find(group);
  return found == groups.end() ? "world" : found->second;
}

StepLog record_steps(const Scenario& scenario, const std::vector<Rank>& ranks) {
  StepLog log;
  for (const Rank rank : ranks) {
    log.ranks[rank];
  }
  sim::Options options = scenario.options;
  options.timeline = false;
  options.decorate = [&](Backend& inner) { return std::make_unique<StepWriter>(inner, log); };
  RunState state;
  sim::run(options, [&](Rank rank) { run_rank(scenario, rank, state); });
  return log;
}

}  // namespace rollcall::scenario
