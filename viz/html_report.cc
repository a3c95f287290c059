#include "viz/html_report.h"

#include <ostream>

#include <fmt/format.h>

#include "viz/html_assets.h"
#include "viz/html_sections.h"
#include "viz/timeline_data.h"

namespace rollcall::viz {

namespace {

// Whatever a name may smuggle in, the page loads nothing and sends nothing.
constexpr std::string_view policy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";

void head(Markup& page, const Report& report) {
  page.open("html", {{"lang", "en"}}).line().open("head").line();
  page.open("meta", {{"charset", "utf-8"}}).line();
  page.open("meta", {{"http-equiv", "Content-Security-Policy"}, {"content", policy}}).line();
  page.open("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}}).line();
  page.open("meta", {{"name", "color-scheme"}, {"content", "light dark"}}).line();
  page.open("link", {{"rel", "icon"}, {"href", "data:,"}}).line();  // else browsers ask a server for one
  page.open("title").short_text(fmt::format("{}: {}", verdict_word(report.verdict), report.scenario), 200);
  page.close("title").line();
}

// The place where the script draws. What stands there until it does is for readers without scripts.
void timeline_place(Markup& page, const Report& report) {
  page.element("h2", "Timeline", {{"id", "timeline-title"}}).line();
  page.open("section", {{"id", "timeline"}, {"aria-labelledby", "timeline-title"}});
  page.element("p", report.timeline.spans().empty()
                        ? "This report has no timeline; `rollcall run --report html=FILE` records one."
                        : "The timeline is drawn by a script, which does not run here. The same as text: "
                          "rollcall run --timeline.");
  page.close("section").line();
}

void body(Markup& page, const Report& report) {
  html_verdict(page, report);
  html_variants(page, report);
  html_states(page, report);
  html_wait_graph(page, report);
  timeline_place(page, report);
  html_sequences(page, report);
  html_messages(page, report);
  html_output(page, report);
  html_run(page, report);
}

}  // namespace

void html_report(const Report& report, std::ostream& out) {
  Markup page;
  head(page, report);
  out << "<!DOCTYPE html>\n" << page.str() << "<style>\n" << html_style() << "</style>\n</head>\n<body>\n";
  Markup content;
  content.open("main").line();
  body(content, report);
  content.close("main").line();
  out << content.str();
  if (!report.timeline.spans().empty()) {
    // Base64 has no character that could end the element.
    out << "<script type=\"application/octet-stream\" id=\"timeline-data\">" << packed_timeline(report)
        << "</script>\n<script type=\"module\">\n"
        << html_script() << "</script>\n";
  }
  out << "</body>\n</html>\n";
}

}  // namespace rollcall::viz
