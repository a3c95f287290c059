#pragma once

// Steps in comparison: as it is, and with changes. The same table as text, as JSON, and on a page.

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/predict/script_prediction.h"
#include "scenarios/predict/step_time.h"
#include "sim/report/report.h"
#include "viz/rows/rank_profile.h"

namespace rollcall::predict {

// A scenario's or a script's step. Means over the ranks.
struct VariantRow {
  std::string name{};  // "as it is", "slow=5%"
  std::string verdict = "ok";
  Rank ranks = 0;
  Duration step = 0;
  Duration compute = 0;
  Duration transfer = 0;  // not hidden by computing
  Duration waiting = 0;   // for others, likewise: stragglers, and a pipeline's bubble
  Duration idle = 0;
  RankSet slowest{};  // the ranks that compute longest; empty if all are alike
  std::optional<double> tokens_per_second{};
  bool slows_rank = false;
};
VariantRow variant_row(const Report& report, const viz::RunProfile& profile);
VariantRow variant_row(const Report& report, const ScriptPrediction& prediction);

struct VariantTable {
  struct Cell {
    std::string text;
    nlohmann::ordered_json value;  // null: none
  };
  struct Column {
    std::string title;  // "step (ms)"
    std::string key;    // "step_us"
  };
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};
VariantTable table_of(const std::vector<VariantRow>& rows);
VariantTable table_of(const std::vector<StepVariant>& variants);

// Leaves out columns that are empty in all rows.
std::string text_of(const VariantTable& table);
// Returns `object` with the table's rows, except the first, as "what_if".
std::string with_variants(const std::string& object, const VariantTable& table);
// `text`: the description of the step as it is. The report may be null.
std::string page_of(const std::string& title, const std::string& text, const VariantTable& table,
                    const Report* report);

}  // namespace rollcall::predict
