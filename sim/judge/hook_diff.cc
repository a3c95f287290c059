#include "sim/judge/complete_parts.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace rollcall::check {
namespace {

// The calls of one iteration, or of one shadow.
struct Iteration {
  Steps steps;
  bool is_whole = false;  // true if the next one has begun
};

// The calls between two of Join's own, around or before the call `met`. If that iteration was cut short, another whole
// one of the same kind serves instead.
std::optional<Iteration> iteration_at(const Steps& steps, std::size_t met) {
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].is_presence && steps[i].shadow == steps[met].shadow) {
      begins.push_back(i);
    }
  }
  std::optional<Iteration> best;
  for (std::size_t i = 0; i < begins.size() && begins[i] < met; ++i) {
    Iteration iteration;
    const auto end = std::find_if(steps.begin() + static_cast<std::ptrdiff_t>(begins[i]) + 1, steps.end(),
                                  [](const Step& step) { return step.is_presence; });
    std::copy_if(steps.begin() + static_cast<std::ptrdiff_t>(begins[i]) + 1, end,
                 std::back_inserter(iteration.steps), [](const Step& step) { return !step.is_joins; });
    iteration.is_whole = end != steps.end();
    if (!best || iteration.is_whole) {
      best = std::move(iteration);
    }
  }
  return best;
}

std::string calls_text(const Iteration& iteration) {
  constexpr std::size_t shown_max = 6;
  std::string text;
  std::size_t shown = 0;
  const Steps& steps = iteration.steps;
  for (std::size_t i = 0; i < steps.size() && shown < shown_max; ++shown) {
    std::size_t next = i;
    while (next < steps.size() && steps[next].text == steps[i].text) {
      ++next;
    }
    text += shown == 0 ? "" : ", ";
    text += next - i > 1 ? fmt::format("{} x {}", next - i, steps[i].text) : steps[i].text;
    i = next;
    if (shown + 1 == shown_max && i < steps.size()) {
      text += fmt::format(", and {} more", steps.size() - i);
    }
  }
  return (text.empty() ? "nothing" : text) + (iteration.is_whole ? "" : ", ...");
}

// What Join needs for the objects in torch that communicate on their own.
struct JoinRule {
  std::string_view scope;  // in the label of the call that no joined rank shadowed
  std::string_view cause;
  std::string_view advice;
  std::string_view shadow{};  // in the label of the joined rank's call; empty: any label
};
constexpr JoinRule join_rules[] = {
    {"zero.shard", "ZeroRedundancyOptimizer broadcasts its shards in step(), but no hook shadows this",
     "join the optimizer as well, after the model: Join([model, optimizer])"},
    {"SyncBatchNorm",
     "SyncBatchNorm exchanges statistics inside forward, and DistributedDataParallel's hook does not shadow "
     "this",
     "use Join(..., throw_on_early_termination=True), so that all ranks stop together"},
    {"ddp.unused",
     "skip_all_reduce_unused_params leaves out a bucket without a used parameter, but a rank that has joined "
     "shadows every bucket",
     "turn skip_all_reduce_unused_params off under Join", "ddp.bucket_shadow"},
    {"ddp.unused", "find_unused_parameters exchanges a map of used parameters, but the hook does not",
     "shadow this exchange after the gradients, as DistributedDataParallel's own hook does"},
    {"ddp.buffers", "the buffers are broadcast before every forward, but the hook does not take part",
     "shadow the broadcast of the buffers, or turn it off with broadcast_buffers=False"},
    {"ddp.backward_sync_flag",
     "the ranks tell each other in every forward whether they will synchronize (no_sync), but the hook does "
     "not",
     "shadow the exchange of this flag before the gradients"},
    {"ddp.bucket",
     "the gradients are not reduced by the calls that the hook makes; a comm_hook or other buckets can cause "
     "this",
     "make the hook run the same communication hook on the same buckets"},
};

bool are_rotated(const Iteration& a, const Iteration& b) {
  const auto texts = [](const Iteration& iteration) {
    std::vector<std::string> sorted;
    for (const Step& step : iteration.steps) {
      sorted.push_back(step.text);
    }
    std::ranges::sort(sorted);
    return sorted;
  };
  return a.is_whole && b.is_whole && a.steps.size() > 1 && texts(a) == texts(b);
}

// The ranks of the calls that met, one for each variant, and the slot where they met.
struct Meeting {
  std::vector<Rank> ranks;
  std::string group;
  std::int64_t seq = 0;
};

std::optional<Meeting> meeting_of(const Verdict& verdict) {
  const Finding& finding = *finding_of(verdict);
  const auto* mismatch = std::get_if<Mismatch>(&verdict);
  const auto* wrong = std::get_if<WrongResult>(&verdict);
  const std::vector<Variant>* variants = mismatch != nullptr ? &mismatch->variants
                                         : wrong != nullptr  ? &wrong->variants
                                                             : nullptr;
  Meeting meeting;
  if (finding.first_divergence) {
    variants = &finding.first_divergence->variants;
    meeting.group = finding.first_divergence->group;
    meeting.seq = finding.first_divergence->seq;
  } else if (finding.at) {
    meeting.group = finding.at->call.group;
    meeting.seq = finding.at->call.seq;
  }
  if (variants == nullptr) {
    return std::nullopt;
  }
  for (const Variant& variant : *variants) {
    meeting.ranks.push_back(variant.ranks.first());
  }
  return meeting;
}

void explain_difference(const Iteration& active, const Iteration& shadow, const Step& met,
                        const Step& met_shadow, Finding& finding) {
  if (are_rotated(active, shadow)) {
    finding.cause = "the iteration calls the joinables in a different order than Join's list";
    finding.advice =
        "list the joinables in the order in which the iteration calls them: the model before the optimizer";
  } else if (const JoinRule* rule = std::ranges::find_if(
                 join_rules,
                 [&](const JoinRule& each) {
                   return met.label.find(each.scope) != std::string::npos && met_shadow.label != met.label &&
                          met_shadow.label.find(each.shadow) != std::string::npos;
                 });
             rule != std::end(join_rules)) {
    finding.cause = rule->cause;
    finding.advice = rule->advice;
  }
  finding.cause += fmt::format(" (forward: {} · main_hook: {})", calls_text(active), calls_text(shadow));
}

}  // namespace

void add_hook_diff(const Outlook& outlook, Verdict& verdict) {
  Finding* finding = finding_of(verdict);
  const auto meeting = finding != nullptr && finding->kind == FindingKind::join_hook_mismatch
                           ? meeting_of(verdict)
                           : std::nullopt;
  if (!meeting) {
    return;
  }
  const StepLog log = outlook.steps(meeting->ranks);
  std::optional<Iteration> sides[2];  // active, joined
  Step met[2];
  for (const Rank rank : meeting->ranks) {
    const auto known = log.ranks.find(rank);
    const Steps own = known == log.ranks.end() ? Steps() : known->second;
    const auto found = std::ranges::find_if(own, [&](const Step& step) {
      return step.seq == meeting->seq && log.group_name(step.group) == meeting->group;
    });
    if (found != own.end()) {
      const auto side = static_cast<std::size_t>(found->shadow);
      sides[side] = iteration_at(own, static_cast<std::size_t>(found - own.begin()));
      met[side] = *found;
    }
  }
  if (sides[0] && sides[1]) {
    explain_difference(*sides[0], *sides[1], met[0], met[1], *finding);
  }
}

}  // namespace rollcall::check
