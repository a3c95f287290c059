#include "viz/html/html_costs.h"

#include <algorithm>
#include <ranges>

#include <fmt/core.h>

#include "viz/html/html_parts.h"
#include "viz/rows/phrases.h"
#include "viz/rows/rank_profile.h"

namespace rollcall::viz {

namespace {

// The number of rows of each list; the JSON report has them all.
constexpr std::size_t page_contexts_max = 20;
constexpr std::size_t rows_max = 100;

std::string ranks_of_steps(const ActiveRanks& active) {
  return active.to == active.from + 1 ? fmt::format("step {}", active.from + 1)
                                      : fmt::format("steps {} to {}", active.from + 1, active.to);
}

// Which ranks stopped when, and how many continued at each step.
void html_join(Markup& out, const JoinCost& cost) {
  html_paragraph(out, "Join:", join_phrase(cost));
  HtmlTable ranks;
  ranks.titles = {"ranks", "steps", "idle", "of the run", "calls shadowed"};
  for (const JoinedRanks& joined : cost.ranks | std::views::take(rows_max)) {
    ranks.rows.push_back({ranks_cell(joined.ranks, false),
                          {.text = fmt::format("{}", joined.steps)},
                          {.text = duration_phrase(joined.idle)},
                          {.text = percent_phrase(idle_permille(joined, cost.run))},
                          {.text = fmt::format("{}", joined.shadow_calls)}});
  }
  write_table(out, ranks, "costs");
  html_counted(out, cost.ranks.size() - ranks.rows.size(), "row");
  HtmlTable active;
  active.titles = {"steps", "ranks with inputs"};
  for (const ActiveRanks& each : cost.active | std::views::take(rows_max)) {
    active.rows.push_back({{.text = ranks_of_steps(each), .is_heading = true},
                           {.text = fmt::format("{} of {}", each.ranks, cost.size)}});
  }
  write_table(out, active, "costs");
  html_counted(out, cost.active.size() - active.rows.size(), "row");
  html_paragraph(out, "Instead:", cost.advice());
}

void html_memory(Markup& out, const MemoryUse& use) {
  html_paragraph(out, "Memory:", memory_phrase(use));
  HtmlTable table;
  table.titles = {"device", "holds"};
  for (std::size_t i = 0; i < std::min(use.devices.size(), rows_max); ++i) {
    table.rows.push_back({{.text = fmt::format("cuda:{}", i), .is_heading = true},
                          {.text = device_memory_phrase(use.devices[i])}});
  }
  write_table(out, table, "costs");
  html_counted(out, use.devices.size() - table.rows.size(), "row");
}

}  // namespace

void html_costs(Markup& out, const Report& report) {
  std::vector<const JoinCost*> uneven;
  for (const JoinCost& cost : report.joins) {
    if (cost.is_uneven()) {
      uneven.push_back(&cost);
    }
  }
  if (!report.samples && report.memory.empty() && uneven.empty()) {
    return;
  }
  html_heading(out, "Cost");
  if (report.samples) {
    html_paragraph(out, "Samples:", samples_phrase(*report.samples));
    for (const std::string& bias : sample_biases(*report.samples)) {
      html_paragraph(out, "Bias:", bias);
    }
  }
  for (const MemoryUse& use : report.memory) {
    html_memory(out, use);
  }
  const std::size_t shown = std::min(uneven.size(), page_contexts_max);
  for (std::size_t i = 0; i < shown; ++i) {
    html_join(out, *uneven[i]);
  }
  html_counted(out, uneven.size() - shown, "context");
}

void html_profile(Markup& out, const Report& report) {
  if (report.timeline.spans().empty() || report.simulated_time == 0) {
    return;
  }
  const RunProfile profile = profile_of(report);
  const auto cell = [&profile](Duration part) {
    const auto permille = static_cast<std::int64_t>(static_cast<__int128>(part) * 1000 / profile.total);
    return HtmlTable::Cell{.text = duration_phrase(part), .note = percent_phrase(permille)};
  };
  HtmlTable table;
  table.titles = {"ranks", "computing", "moving data", "waiting for others", "idle"};
  for (const RankProfile& ranks : profile.ranks | std::views::take(rows_max)) {
    table.rows.push_back({ranks_cell(ranks.ranks, false), cell(ranks.compute), cell(ranks.transfer),
                          cell(ranks.waiting), cell(ranks.rest)});
  }
  html_heading(out, "Where the time went");
  write_table(out, table, "profile");
  html_counted(out, profile.ranks.size() - table.rows.size(), "row");
  out.element(
         "p",
         fmt::format(
             "Of {}. Moving data and waiting count where no computing hides them. Idle: before the first "
             "call, between calls and after the last.",
             duration_phrase(profile.total)),
         {{"class", "note"}})
      .line();
}

}  // namespace rollcall::viz
