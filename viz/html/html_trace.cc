#include "viz/html/html_trace.h"

#include <algorithm>

#include <fmt/core.h>

#include "viz/html/html_costs.h"
#include "viz/html/html_page.h"
#include "viz/html/html_parts.h"
#include "viz/html/html_sections.h"
#include "viz/rows/phrases.h"

namespace rollcall::viz {

void html_trace(const Report& recorded, const std::string& source, std::ostream& out) {
  const PageTimeline timeline{&recorded};
  const std::vector<Span>& spans = recorded.timeline.spans();
  const auto open = std::ranges::count(spans, Span::open, &Span::end);
  Markup page;
  page.open("header", {{"class", open > 0 ? "warning" : "plain"}});
  page.open("p", {{"class", "scenario"}}).text(recorded.scenario).close("p").line();
  page.open("h1").text(fmt::format("{}, {} in {}", count_phrase(recorded.world_size, "rank"),
                                   count_phrase(recorded.ops, "call"),
                                   duration_phrase(recorded.simulated_time)));
  page.text(open > 0 ? fmt::format("; {} never returned", open) : "").close("h1").line();
  page.element("p", fmt::format("A recorded timeline from {}. A trace has no verdict.", source)).line();
  html_paragraph(page, "Replay:", recorded.replay);
  page.close("header").line();
  timeline_place(page, timeline, 0);
  html_messages(page, recorded);
  html_profile(page, recorded);
  html_page(out, fmt::format("trace: {}", source), page, {timeline});
}

}  // namespace rollcall::viz
