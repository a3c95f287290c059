#include "viz/html/html_diagnosis.h"

#include <algorithm>
#include <ranges>

#include <fmt/core.h>

#include "viz/html/html_calls.h"
#include "viz/html/html_page.h"
#include "viz/html/html_parts.h"
#include "viz/html/html_sections.h"
#include "viz/rows/diagnosis_parts.h"
#include "viz/rows/verdict_parts.h"

namespace rollcall::viz {

namespace {

constexpr std::size_t remarks_max = 50;

std::string_view look_of(const Diagnosis& diagnosis) {
  if (diagnosis.finding.kind == FindingKind::no_fault && !diagnosis.may_be_healthy) {
    return "success";
  }
  return is_alarm(diagnosis) && diagnosis.finding.kind != FindingKind::straggler ? "failure" : "warning";
}

void sentence(Markup& out, const Diagnosis& diagnosis, const Report& recorded) {
  const Finding& finding = diagnosis.finding;
  out.open("header", {{"class", look_of(diagnosis)}});
  out.open("p", {{"class", "scenario"}}).text(recorded.scenario).close("p").line();
  out.open("h1").element("span", to_string(diagnosis.finding.kind), {{"class", "word"}}).text(": ");
  out.text(finding.headline).close("h1").line();
  html_excerpts(out, recorded);
  html_paragraph(out, "Cause:", finding.cause);
  html_paragraph(out, "Help:", finding.advice);
  html_paragraph(out, "Repair:", repair_phrase(finding, replay_proof));
  html_paragraph(out, "Confidence:", confidence_phrase(diagnosis));
  html_paragraph(out, "Group:", group_phrase(diagnosis));
  out.close("header").line();
}

void list(Markup& out, std::string_view title, const std::vector<std::string>& sentences) {
  if (sentences.empty()) {
    return;
  }
  html_heading(out, title);
  out.open("ul").line();
  for (const std::string& each : sentences) {
    out.element("li", each).line();
  }
  out.close("ul").line();
}

void what_was_read(Markup& out, const Diagnosis& diagnosis, const Remarks& remarks) {
  html_heading(out, "What was read");
  out.element("p", records_phrase(diagnosis) +
                       ". Times come from each rank's own clock; the recorder polls, so starts and ends are "
                       "late. Calls have the recorder's numbers, from 1.")
      .line();
  for (const std::string& remark : remarks | std::views::take(remarks_max)) {
    out.element("p", remark).line();
  }
  html_counted(out, remarks.size() - std::min(remarks.size(), remarks_max), "remark");
}

}  // namespace

void html_diagnosis(const Diagnosis& diagnosis, const Report& recorded, const Remarks& remarks,
                    std::ostream& out) {
  const PageTimeline timeline{&recorded, "The recorded calls"};
  Markup page;
  sentence(page, diagnosis, recorded);
  list(page, "Evidence", diagnosis.evidence);
  list(page, "What would settle it", diagnosis.would_settle);
  if (!diagnosis.variants.empty()) {
    html_heading(page, "Who called what");
    html_variants_table(page, diagnosis.variants, diagnosis.finding.culprits);
  }
  html_states(page, recorded);
  html_wait_graph(page, recorded);
  timeline_place(page, timeline, 0);
  html_sequences(page, recorded);
  html_messages(page, recorded);
  what_was_read(page, diagnosis, remarks);
  html_page(out, fmt::format("{}: {}", to_string(diagnosis.finding.kind), recorded.scenario), page,
            {timeline});
}

}  // namespace rollcall::viz
