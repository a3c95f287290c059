#include "viz/kinds/explanations.h"

#include <algorithm>

#include "sim/report/finding_kinds.h"
#include "viz/base/text_page.h"
#include "viz/kinds/findings_page.h"

namespace rollcall::viz {

namespace {

Row overview_row(const Explanation& entry) {
  const bool is_verdict = entry.verdicts.empty();
  return {(is_verdict ? "" : "  ") + entry.word, entry.title, is_verdict ? Look::strong : Look::plain};
}

}  // namespace

std::span<const Explanation> explanations() {
  static const std::vector<Explanation> page = read_findings(findings_text());
  return page;
}

const Explanation* find_explanation(std::string_view word) {
  const std::optional<FindingKind> kind = parse_finding_kind(word);
  const std::span<const Explanation> all = explanations();
  const auto entry = std::ranges::find(all, kind ? to_string(*kind) : word, &Explanation::word);
  return entry == all.end() ? nullptr : &*entry;
}

std::string explanation_text(const Explanation& entry, bool color) {
  TextPage page(color);
  page.headline(entry.word, Look::error, entry.title);
  page.frame_line();
  page.frame_rows({{"", entry.meaning}});
  page.frame_line();
  page.note_unless_empty("verdict", entry.verdicts);
  page.note_unless_empty("example", entry.example);
  page.note_unless_empty("typical cause", entry.cause);
  page.note_unless_empty("help", entry.advice);
  page.note_unless_empty("on gloo", entry.on_gloo);
  page.note_unless_empty("on nccl", entry.on_nccl);
  page.note_unless_empty("reports", entry.reports);
  return page.text();
}

std::string explanations_overview(bool color) {
  TextPage page(color);
  std::vector<Row> rows;
  std::ranges::transform(explanations(), std::back_inserter(rows), overview_row);
  page.rows(rows, 0);
  return page.text();
}

}  // namespace rollcall::viz
