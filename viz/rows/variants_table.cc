#include "viz/rows/variants_table.h"

#include <algorithm>
#include <string>
#include <utility>

namespace rollcall::viz {

namespace {

std::string call_cell(const Call& call) { return call.op + " #" + std::to_string(call.seq); }
std::string group_cell(const Call& call) { return call.group; }
std::string numel_cell(const Call& call) {
  return call.dtype.empty() ? "" : std::to_string(call.numel);  // a barrier carries no data
}
std::string dtype_cell(const Call& call) { return call.dtype; }
std::string reduce_cell(const Call& call) { return call.reduce_op; }
std::string root_cell(const Call& call) { return call.root < 0 ? "" : std::to_string(call.root); }
std::string ranks_cell(const Call& call) { return call.ranks; }
std::string device_cell(const Call& call) { return call.device; }
std::string label_cell(const Call& call) { return call.label; }
std::string site_cell(const Call& call) { return call.site; }

// Calls may come from different places without a fault, but they must ask for the same operation. Reduction and root
// belong to the operation: if that differs already, they add nothing new.
enum class Rule { must_agree, belongs_to_call, may_differ };

struct Field {
  const char* title;
  std::string (*cell)(const Call&);
  Rule rule;
};

constexpr Field fields[] = {
    {"call", call_cell, Rule::must_agree},          {"group", group_cell, Rule::must_agree},
    {"numel", numel_cell, Rule::must_agree},        {"dtype", dtype_cell, Rule::must_agree},
    {"reduce", reduce_cell, Rule::belongs_to_call}, {"root", root_cell, Rule::belongs_to_call},
    {"for ranks", ranks_cell, Rule::must_agree},    {"device", device_cell, Rule::may_differ},
    {"from", label_cell, Rule::may_differ},         {"at", site_cell, Rule::may_differ},
};

bool all_equal(const std::vector<std::string>& cells) {
  return std::adjacent_find(cells.begin(), cells.end(), std::not_equal_to<>()) == cells.end();
}

bool same_operation(const std::vector<Variant>& variants) {
  return std::all_of(variants.begin(), variants.end(), [&variants](const Variant& variant) {
    return variant.call.op == variants.front().call.op;
  });
}

bool is_news(Rule rule, const std::vector<Variant>& variants) {
  return rule == Rule::must_agree || (rule == Rule::belongs_to_call && same_operation(variants));
}

Table::Column column_of(const Field& field, const std::vector<Variant>& variants) {
  Table::Column column;
  column.title = field.title;
  for (const Variant& variant : variants) {
    column.cells.push_back(printable(field.cell(variant.call)));
  }
  column.differs = is_news(field.rule, variants) && !all_equal(column.cells);
  return column;
}

bool is_blank(const Table::Column& column) {
  return std::all_of(column.cells.begin(), column.cells.end(),
                     [](const std::string& cell) { return cell.empty(); });
}

bool is_shown(const Field& field, const Table::Column& column, VariantsStyle style) {
  if (field.cell == device_cell) {
    return style.with_device;
  }
  if (field.cell == group_cell) {
    return column.differs;  // otherwise the headline names it
  }
  return !is_blank(column);
}

}  // namespace

VariantsStyle variants_style(const Verdict& verdict) {
  const auto* mismatch = std::get_if<Mismatch>(&verdict);
  return {.with_device = std::holds_alternative<DeviceMismatch>(verdict),
          .sizes_may_differ = mismatch != nullptr && !mismatch->splits.empty()};
}

Table variants_table(const std::vector<Variant>& variants, const RankSet& culprits, VariantsStyle style) {
  Table table;
  Table::Column who;
  for (const Variant& variant : variants) {
    const bool is_culprit = variant.ranks.meets(culprits);
    who.cells.push_back(ranks_phrase(variant.ranks));
    table.looks.push_back(is_culprit ? Look::error : Look::plain);
  }
  table.columns.push_back(std::move(who));
  for (const Field& field : fields) {
    Table::Column column = column_of(field, variants);
    column.differs = column.differs && !(style.sizes_may_differ && field.cell == numel_cell);
    if (is_shown(field, column, style)) {
      table.columns.push_back(std::move(column));
    }
  }
  return table;
}

}  // namespace rollcall::viz
