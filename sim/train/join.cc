#include "sim/train/join.h"

#include <utility>

#include <fmt/core.h>

#include "sim/base/expects.h"
#include "sim/c10d/observer.h"
#include "sim/c10d/rank_context.h"
#include "sim/c10d/scope.h"

namespace rollcall {
namespace {

// join.py's WARN_THRESHOLD: shadow iterations after which a skew is worth a warning.
constexpr std::int64_t skew_warning_threshold = 1000;

// An all_reduce of one float on the join group. `presence` is what a rank adds: 1 when it has not joined (or wants all
// ranks to stop), 0 otherwise.
Tensor presence(double value, Device device) { return Tensor::full({1}, value, Dtype::float32, device); }

// For the judge: if ranks get out of step, this is why.
void observe_notifying_hook(const Joinable& joinable) {
  Observation observation{.kind = Observation::Kind::hook_notifies};
  observation.handle = joinable.name();
  this_rank().backend->observer().observe(observation);
}

}  // namespace

Join::Join(const Joinables& joinables, JoinOptions options)
    : joinables_(joinables.list()), options_(std::move(options)) {
  if (joinables_.empty()) {
    throw ValueError("The join context manager requires at least one joinable");
  }
  for (Joinable& joinable : joinables_) {
    hooks_.push_back(joinable.join_hook(options_.kwargs));
    expects(hooks_.back() != nullptr, "join_hook returns a hook");
  }
  bool is_first = true;
  for (Joinable& joinable : joinables_) {
    joinable.join_config = Joinable::Config{options_.enable, options_.throw_on_early_termination, is_first};
    is_first = false;
  }
  // Only now are the groups compared: a ValueError leaves the joinables configured, as in torch.
  Joinable& first = joinables_.front();
  first.notifications = 0;
  group_ = first.join_process_group();
  device_ = first.join_device();
  for (Joinable& joinable : joinables_) {
    if (!(joinable.join_process_group() == group_)) {
      throw ValueError("Using join context manager with multiple process groups");
    }
  }
  if (options_.enable && first.hook_notifies()) {
    observe_notifying_hook(first);
  }
}

Work Join::notify_join_context(Joinable& joinable, Site site) {
  Tensor active_ranks;
  return notify_join_context(joinable, active_ranks, site);
}

Work Join::notify_join_context(Joinable& joinable, Tensor& active_ranks, Site site) {
  active_ranks = Tensor();
  if (!joinable.join_config) {
    throw AssertionError(
        fmt::format("Check that the {} constructor calls the ``Joinable`` constructor", joinable.name()));
  }
  const Joinable::Config config = *joinable.join_config;
  if (!config.is_first_joinable || !config.enable) {
    return {};
  }
  const ProcessGroup group = joinable.join_process_group();
  const Device device = joinable.join_device();
  ++joinable.notifications;
  if (this_rank().shadowing) {
    observe_notifying_hook(joinable);
  }
  Work notified;
  {
    Scope scope("join.notify", "join.presence");
    active_ranks = presence(1, device);
    notified = all_reduce(active_ranks, {.group = group, .async_op = true}, site);
  }
  if (config.throw_on_early_termination) {
    Scope scope("join.notify", "join.terminate");
    const Tensor somebody_exhausted = presence(0, device);
    all_reduce(somebody_exhausted, {.group = group}, site);
    if (somebody_exhausted.item() != 0) {
      throw RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.");
    }
  }
  return notified;
}

void Join::leave() {
  if (!options_.enable) {
    return;
  }
  warning_filter().switch_to_once();
  const bool is_last_joiner = shadow_until_everyone_joined() == 0;
  for (const auto& hook : hooks_) {
    hook->post_hook(is_last_joiner);
  }
}

// Returns the number of iterations shadowed.
std::int64_t Join::shadow_until_everyone_joined() {
  const Shadowing shadowing;
  RankContext& self = this_rank();
  const std::int64_t steps = joinables_.front().get().notifications;
  self.shadow_calls = 0;
  self.backend->observer().joined();
  std::int64_t iterations = 0;
  while (shadow_once(iterations)) {
    ++iterations;
  }
  self.backend->observer().everyone_joined(group_, steps, self.shadow_calls);
  return iterations;
}

// Shadows one iteration of the active ranks. False when all ranks have joined.
bool Join::shadow_once(std::int64_t iteration) {
  if (iteration > skew_warning_threshold) {
    warn(
        fmt::format("Detected uneven input skew of greater than {}. This means that rank {} has at least {} "
                    "fewer inputs than other currently-active ranks. This level of skew could lead to "
                    "performance degradation during training.",
                    skew_warning_threshold, group_.rank(), skew_warning_threshold));
  }
  if (has_everyone_joined()) {
    return false;
  }
  if (options_.throw_on_early_termination) {
    terminate_everyone();
  }
  for (const auto& hook : hooks_) {
    hook->main_hook();
  }
  return true;
}

bool Join::has_everyone_joined() {
  Scope scope("join.count", "join.presence");
  const Tensor active = presence(0, device_);
  all_reduce(active, {.group = group_}, {});
  return active.item() == 0;  // any value, if the call met one of another type; only 0 ends the loop
}

void Join::terminate_everyone() {
  Scope scope("join.terminate", "join.terminate");
  all_reduce(presence(1, device_), {.group = group_}, {});
  throw RuntimeError(fmt::format("Rank {} exhausted all inputs.", group_.rank()));
}

}  // namespace rollcall
