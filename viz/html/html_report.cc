#include "viz/html/html_report.h"

#include <fmt/core.h>

#include "viz/html/html_calls.h"
#include "viz/html/html_costs.h"
#include "viz/html/html_page.h"
#include "viz/html/html_sections.h"

namespace rollcall::viz {

void html_report(const Report& report, std::ostream& out) {
  const PageTimeline timeline{&report};
  Markup page;
  html_verdict(page, report);
  html_variants(page, report);
  html_states(page, report);
  html_wait_graph(page, report);
  timeline_place(page, timeline, 0);
  // The comparison of a join hook's calls with the iteration's is a better version of the call
  // sequences.
  if (!html_shadows(page, report)) {
    html_sequences(page, report);
  }
  html_messages(page, report);
  html_profile(page, report);
  html_costs(page, report);
  html_output(page, report);
  html_run(page, report);
  html_page(out, fmt::format("{}: {}", verdict_word(report.verdict), report.scenario), page, {timeline});
}

}  // namespace rollcall::viz
