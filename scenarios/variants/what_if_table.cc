#include "scenarios/variants/what_if_table.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/report/verdict.h"

namespace rollcall::scenario {
namespace {

using OutJson = nlohmann::ordered_json;

// Disturbances of one kind with the same outcome.
struct Row {
  std::string what;
  std::string came_to;
  std::string headline;  // of the first
  std::vector<std::string> where;
};

std::vector<Row> rows_of(const std::vector<Survival>& survivals) {
  std::vector<Row> rows;
  for (const Survival& each : survivals) {
    const std::string result = verdict_phrase(each.verdict, each.kind);
    const auto known = std::ranges::find_if(
        rows, [&](const Row& row) { return row.what == each.what && row.came_to == result; });
    Row& row = known == rows.end() ? rows.emplace_back(Row{each.what, result, each.headline, {}}) : *known;
    row.where.push_back(each.where);
  }
  return rows;
}

std::string where_phrase(const std::vector<std::string>& where) {
  constexpr std::size_t most = 4;
  const std::vector<std::string> first(
      where.begin(), where.begin() + static_cast<std::ptrdiff_t>(std::min(where.size(), most)));
  return fmt::format("{}{}", fmt::join(first, ", "),
                     where.size() > most ? fmt::format(" and {} more", where.size() - most) : "");
}

std::size_t survived(const WhatIf& found) {
  return static_cast<std::size_t>(std::ranges::count(found.survivals, "ok", &Survival::verdict));
}

}  // namespace

std::string what_if_text(const WhatIf& found) {
  std::string text =
      fmt::format("{}: verdict {} if undisturbed; it survives {} of {} disturbances{}\n",
                  found.undisturbed.scenario, verdict_word(found.undisturbed.verdict), survived(found),
                  found.survivals.size(), found.interrupted ? "; interrupted, there are more" : "");
  for (const Row& row : rows_of(found.survivals)) {
    text += fmt::format("  {:<16} {:<38} {}\n", row.what, row.came_to, where_phrase(row.where));
    text += row.headline.empty() ? "" : fmt::format("  {:<16}   {}\n", "", row.headline);
  }
  return text;
}

std::string what_if_json(const WhatIf& found) {
  OutJson object = {{"schema_version", 1},
                    {"scenario", found.undisturbed.scenario},
                    {"undisturbed", verdict_word(found.undisturbed.verdict)},
                    {"survived", survived(found)},
                    {"disturbances", OutJson::array()}};
  for (const Survival& each : found.survivals) {
    OutJson row = {{"what", each.what},
                   {"where", each.where},
                   {"verdict", each.verdict},
                   {"kind", to_string(each.kind)}};
    if (!each.headline.empty()) {
      row["headline"] = each.headline;
    }
    object["disturbances"].push_back(std::move(row));
  }
  if (found.interrupted) {
    object["interrupted"] = true;
  }
  return object.dump(2, ' ', true, OutJson::error_handler_t::replace) + "\n";
}

}  // namespace rollcall::scenario
