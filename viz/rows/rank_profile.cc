#include "viz/rows/rank_profile.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/report/remarks.h"
#include "viz/rows/activity.h"
#include "viz/rows/phrases.h"

namespace rollcall::viz {

namespace {

using Json = nlohmann::ordered_json;

RankProfile profile_of_rank(const RankActivity& activity, Duration total) {
  RankProfile profile;
  profile.compute = length(activity.compute);
  profile.hidden = overlap(activity.compute, activity.communication);
  profile.transfer = length(activity.transfer) - overlap(activity.compute, activity.transfer);
  profile.waiting = length(activity.communication) - profile.hidden - profile.transfer;
  profile.rest = total - profile.compute - profile.exposed();
  return profile;
}

auto durations(const RankProfile& profile) {
  return std::tuple(profile.compute, profile.transfer, profile.waiting, profile.hidden, profile.rest);
}

std::int64_t inputs_max(const Report& report) {
  std::int64_t most = 0;
  for (const RankClass& each : report.ranks) {
    most = std::max(most, each.inputs);
  }
  return most;
}

std::int64_t slowed_calls(const Timeline& timeline) {
  std::set<std::pair<std::uint32_t, std::int64_t>> calls;  // by group and number
  for (const Span& span : timeline.spans()) {
    if (span.moves_data() && timeline.name(span.arguments).find(slowed_mark) != std::string::npos) {
      calls.emplace(span.group, span.seq);
    }
  }
  return static_cast<std::int64_t>(calls.size());
}

void count_kernels(const Timeline& timeline, RunProfile& profile) {
  for (const Span& span : timeline.spans()) {
    const bool is_kernel = span.kind == Span::Kind::compute && span.stream >= 0;
    profile.kernels += is_kernel ? 1 : 0;
    profile.by_roofline += is_kernel && span.by_roofline ? 1 : 0;
  }
}

// Says where the times of kernels come from, and what a host's time hides that a GPU's would not.
std::string computing_text(const RunProfile& profile) {
  if (profile.kernels > 0) {
    return fmt::format("# {}, {} of them timed by the work they do (a roofline of the GPU)\n",
                       count_phrase(profile.kernels, "kernel"), profile.by_roofline);
  }
  const bool hides =
      std::ranges::any_of(profile.ranks, [](const RankProfile& each) { return each.hidden > 0; });
  return hides ? "# compute is the host's time here, and calls before it count as hidden; what a GPU "
                 "computes is a\n"
                 "# kernel, which is queued behind them (docs/step-time.md)\n"
               : "";
}

}  // namespace

RunProfile profile_of(const Report& report) {
  RunProfile profile;
  count_kernels(report.timeline, profile);
  profile.total = report.simulated_time;
  profile.slowed = slowed_calls(report.timeline);
  profile.steps = inputs_max(report);
  const std::vector<RankActivity> activities = activities_of(report, report.simulated_time);
  std::map<decltype(durations(RankProfile{})), std::size_t> known;  // index into profile.ranks
  for (std::size_t rank = 0; rank < activities.size(); ++rank) {
    RankProfile own = profile_of_rank(activities[rank], profile.total);
    const auto [entry, is_new] = known.try_emplace(durations(own), profile.ranks.size());
    if (is_new) {
      profile.ranks.push_back(std::move(own));
    }
    profile.ranks[entry->second].ranks.insert(static_cast<Rank>(rank));
  }
  return profile;
}

std::string profile_text(const Report& report, const RunProfile& profile) {
  std::string text = fmt::format("{}: {} ms", report.scenario, in_milliseconds(profile.total));
  if (profile.steps > 0) {
    text += fmt::format(" for {}, {} ms each", count_phrase(profile.steps, "step"),
                        in_milliseconds(profile.total / profile.steps));
  }
  text += fmt::format("\n# {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}  ranks\n", "compute", "transfer",
                      "waiting", "exposed", "hidden", "rest");
  text += fmt::format("# {0:>12} {0:>12} {0:>12} {0:>12} {0:>12} {0:>12}\n", "(ms)");
  for (const RankProfile& each : profile.ranks) {
    text += fmt::format("  {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}  {}\n", in_milliseconds(each.compute),
                        in_milliseconds(each.transfer), in_milliseconds(each.waiting),
                        in_milliseconds(each.exposed()), in_milliseconds(each.hidden),
                        in_milliseconds(each.rest), to_string(each.ranks));
  }
  text += computing_text(profile);
  if (profile.slowed > 0) {
    text += fmt::format(
        "# {} took longer than alone, because others beside {} needed the same ports or NICs; --trace says "
        "which\n",
        count_phrase(profile.slowed, "call"), profile.slowed == 1 ? "it" : "them");
  }
  return text;
}

std::string profile_json(const Report& report, const RunProfile& profile) {
  Json ranks = Json::array();
  for (const RankProfile& each : profile.ranks) {
    ranks.push_back({{"ranks", to_string(each.ranks)},
                     {"compute_us", in_microseconds(each.compute)},
                     {"transfer_us", in_microseconds(each.transfer)},
                     {"waiting_us", in_microseconds(each.waiting)},
                     {"exposed_us", in_microseconds(each.exposed())},
                     {"hidden_us", in_microseconds(each.hidden)},
                     {"rest_us", in_microseconds(each.rest)}});
  }
  Json object = {{"schema_version", 1},
                 {"scenario", report.scenario},
                 {"verdict", verdict_word(report.verdict)},
                 {"time_us", in_microseconds(profile.total)}};
  if (profile.steps > 0) {
    object["steps"] = profile.steps;
    object["step_us"] = in_microseconds(profile.total / profile.steps);
  }
  if (profile.kernels > 0) {
    object["kernels"] = profile.kernels;
    object["kernels_by_roofline"] = profile.by_roofline;
  }
  if (profile.slowed > 0) {
    object["slowed_calls"] = profile.slowed;
  }
  object["ranks"] = std::move(ranks);
  return object.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace rollcall::viz
