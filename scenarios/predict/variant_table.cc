#include "scenarios/predict/variant_table.h"

#include <algorithm>
#include <sstream>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/predict/shortage.h"
#include "viz/html/html_costs.h"
#include "viz/html/html_page.h"
#include "viz/html/html_parts.h"
#include "viz/rows/phrases.h"

namespace rollcall::predict {

namespace {

using Json = nlohmann::ordered_json;
using Cell = VariantTable::Cell;

Cell time_cell(Duration time) { return {viz::in_milliseconds(time), viz::in_microseconds(time)}; }

Cell change_cell(double fraction) { return {fmt::format("{:+.1f}", 100 * fraction), fraction}; }

Cell number_cell(double value, int digits) { return {fmt::format("{:.{}f}", value, digits), value}; }

// Returns the table without columns that are empty in all rows.
VariantTable without_empty(VariantTable table) {
  for (std::size_t column = table.columns.size(); column-- > 0;) {
    const bool is_empty =
        std::ranges::all_of(table.rows, [column](const auto& row) { return row[column].text.empty(); });
    if (is_empty) {
      const auto at = static_cast<std::ptrdiff_t>(column);
      table.columns.erase(table.columns.begin() + at);
      for (auto& row : table.rows) {
        row.erase(row.begin() + at);
      }
    }
  }
  return table;
}

std::int64_t most_memory(const StepPrediction& prediction) {
  return std::ranges::max_element(prediction.memory, {}, &StageMemory::bytes)->bytes();
}

// For a row in which a rank was slowed: the GPU seconds, over all GPUs, that each step loses compared with the first
// row.
double lost_seconds(const VariantRow& row, const VariantRow& first) {
  return static_cast<double>(row.step - first.step) / 1e9 * static_cast<double>(row.ranks);
}

}  // namespace

VariantRow variant_row(const Report& report, const viz::RunProfile& profile) {
  VariantRow row{.verdict = std::string(verdict_word(report.verdict)), .ranks = report.world_size};
  const std::int64_t steps = std::max<std::int64_t>(profile.steps, 1);
  row.step = profile.total / steps;
  const auto mean = [&](Duration viz::RankProfile::*part) {
    Duration sum = 0;
    for (const viz::RankProfile& each : profile.ranks) {
      sum += each.*part * static_cast<Duration>(each.ranks.size());
    }
    return sum / steps / std::max<Duration>(1, report.world_size);
  };
  row.compute = mean(&viz::RankProfile::compute);
  row.transfer = mean(&viz::RankProfile::transfer);
  row.waiting = mean(&viz::RankProfile::waiting);
  row.idle = mean(&viz::RankProfile::rest);
  const auto [least, most] = std::ranges::minmax(profile.ranks, {}, &viz::RankProfile::compute);
  if (most.compute - least.compute > most.compute / 1000) {
    for (const viz::RankProfile& each : profile.ranks) {
      if (each.compute == most.compute) {
        row.slowest = each.ranks;
      }
    }
  }
  return row;
}

VariantRow variant_row(const Report& report, const ScriptPrediction& prediction) {
  VariantRow row{.verdict = std::string(verdict_word(report.verdict)),
                 .ranks = report.world_size,
                 .step = prediction.step,
                 .compute = prediction.compute,
                 .idle = prediction.idle,
                 .slowest = prediction.slowest};
  for (const ExposedCall& call : prediction.exposed) {
    row.transfer += call.transfer;
    row.waiting += call.waiting;
  }
  return row;
}

VariantTable table_of(const std::vector<VariantRow>& rows) {
  VariantTable table;
  table.columns = {{"step (ms)", "step_us"},
                   {"change (%)", "change"},
                   {"computing", "compute_us"},
                   {"moving data", "transfer_us"},
                   {"waiting", "waiting_us"},
                   {"idle", "idle_us"},
                   {"tokens/s", "tokens_per_second"},
                   {"lost (GPU s)", "lost_gpu_seconds"},
                   {"slowest", "slowest"},
                   {"verdict", "verdict"},
                   {"what if", "what_if"}};
  const VariantRow& first = rows.front();
  for (const VariantRow& row : rows) {
    const double change =
        static_cast<double>(row.step) / static_cast<double>(std::max<Duration>(1, first.step)) - 1;
    table.rows.push_back(
        {time_cell(row.step),
         &row == &first ? Cell{} : change_cell(change),
         time_cell(row.compute),
         time_cell(row.transfer),
         time_cell(row.waiting),
         time_cell(row.idle),
         row.tokens_per_second ? number_cell(*row.tokens_per_second, 0) : Cell{},
         row.slows_rank ? number_cell(lost_seconds(row, first), 3) : Cell{},
         row.slowest.empty() ? Cell{} : Cell{ranks_phrase(row.slowest), to_string(row.slowest)},
         row.verdict == "ok" ? Cell{"", "ok"} : Cell{row.verdict, row.verdict},
         {row.name, row.name}});
  }
  return table;
}

VariantTable table_of(const std::vector<StepVariant>& variants) {
  VariantTable table;
  table.columns = {{"step (ms)", "step_us"},   {"tokens/s/GPU", "tokens_per_second_per_gpu"},
                   {"speed (%)", "change"},    {"MFU (%)", "model_flops_utilization"},
                   {"memory", "memory_bytes"}, {"lost (GPU s)", "lost_gpu_seconds"},
                   {"verdict", "verdict"},     {"what if", "what_if"}};
  const StepVariant& first = variants.front();
  for (const StepVariant& variant : variants) {
    const StepPrediction& own = variant.prediction;
    const double speed = own.tokens_per_second_per_gpu() / first.prediction.tokens_per_second_per_gpu() - 1;
    const std::string verdict(own.fits() ? "ok" : shortage_verdict());
    table.rows.push_back({time_cell(own.step),
                          number_cell(own.tokens_per_second_per_gpu(), 0),
                          &variant == &first ? Cell{} : change_cell(speed),
                          {fmt::format("{:.1f}", 100 * own.utilization()), own.utilization()},
                          {viz::bytes_phrase(most_memory(own)), most_memory(own)},
                          variant.is_straggler ? number_cell(variant.lost, 1) : Cell{},
                          {own.fits() ? "" : verdict, verdict},
                          {variant.name, variant.name}});
  }
  return table;
}

std::string text_of(const VariantTable& all) {
  const VariantTable table = without_empty(all);
  std::string text = "#";
  std::vector<std::size_t> widths;
  const std::size_t last = table.columns.size() - 1;  // left-aligned
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    std::size_t width = table.columns[column].title.size();
    for (const auto& row : table.rows) {
      width = std::max(width, row[column].text.size());
    }
    widths.push_back(width);
    text += column == last ? fmt::format("  {}", table.columns[column].title)
                           : fmt::format(" {:>{}}", table.columns[column].title, width);
  }
  text += "\n";
  for (const auto& row : table.rows) {
    text += " ";
    for (std::size_t column = 0; column < row.size(); ++column) {
      text +=
          column == last ? "  " + row[column].text : fmt::format(" {:>{}}", row[column].text, widths[column]);
    }
    text += "\n";
  }
  return text;
}

std::string with_variants(const std::string& object, const VariantTable& table) {
  Json all = Json::parse(object);
  all["what_if"] = Json::array();
  for (std::size_t i = 1; i < table.rows.size(); ++i) {
    Json row = Json::object();
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      if (!table.rows[i][column].value.is_null()) {
        row[table.columns[column].key] = table.rows[i][column].value;
      }
    }
    all["what_if"].push_back(std::move(row));
  }
  return all.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

std::string page_of(const std::string& title, const std::string& text, const VariantTable& all,
                    const Report* report) {
  const VariantTable table = without_empty(all);
  viz::Markup out;
  out.element("h1", title).line();
  if (table.rows.size() > 1) {
    viz::html_heading(out, "What if");
    viz::HtmlTable shown;
    for (const VariantTable::Column& column : table.columns) {
      shown.titles.push_back(column.title);
    }
    std::ranges::rotate(shown.titles, shown.titles.end() - 1);  // the change comes first
    for (const auto& row : table.rows) {
      std::vector<viz::HtmlTable::Cell> cells{{.text = row.back().text, .is_heading = true}};
      for (std::size_t column = 0; column + 1 < row.size(); ++column) {
        cells.push_back({.text = row[column].text});
      }
      shown.rows.push_back(std::move(cells));
    }
    viz::write_table(out, shown, "profile");
  }
  std::vector<viz::PageTimeline> timelines;
  if (report != nullptr) {
    viz::html_profile(out, *report);
    timelines.push_back({.report = report});
    viz::timeline_place(out, timelines.front(), 0);
  }
  viz::html_heading(out, "The step as it is");
  out.open("pre");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    out.text(line).line();
  }
  out.close("pre").line();
  std::ostringstream page;
  viz::html_page(page, title, out, timelines);
  return page.str();
}

}  // namespace rollcall::predict
