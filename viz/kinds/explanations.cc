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

void note_if_given(TextPage& page, std::string_view key, std::string_view text) {
  if (!text.empty()) {
    page.note(key, text);
  }
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
  note_if_given(page, "verdict", entry.verdicts);
  note_if_given(page, "example", entry.example);
  note_if_given(page, "typical cause", entry.cause);
  note_if_given(page, "help", entry.advice);
  note_if_given(page, "on gloo", entry.on_gloo);
  note_if_given(page, "on nccl", entry.on_nccl);
  note_if_given(page, "reports", entry.reports);
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
