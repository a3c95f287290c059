#include "viz/html/html_page.h"

#include <algorithm>
#include <ostream>

#include <fmt/core.h>

#include "viz/html/html_assets.h"
#include "viz/html/html_table.h"
#include "viz/html/timeline_data.h"

namespace rollcall::viz {

namespace {

// Whatever a name may inject, the page loads nothing and sends nothing.
constexpr std::string_view policy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";

std::string id_of(std::string_view name, std::size_t number) {
  return number == 0 ? std::string(name) : fmt::format("{}-{}", name, number + 1);
}

void head(Markup& page, std::string_view title) {
  page.open("html", {{"lang", "en"}}).line().open("head").line();
  page.open("meta", {{"charset", "utf-8"}}).line();
  page.open("meta", {{"http-equiv", "Content-Security-Policy"}, {"content", policy}}).line();
  page.open("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}}).line();
  page.open("meta", {{"name", "color-scheme"}, {"content", "light dark"}}).line();
  page.open("link", {{"rel", "icon"}, {"href", "data:,"}}).line();  // otherwise browsers ask a server for one
  page.open("title").short_text(title, 200).close("title").line();
}

bool has_spans(const PageTimeline& timeline) { return !timeline.report->timeline.spans().empty(); }

// Cannot match the user's text, whose quotes are escaped.
bool has_filter(const Markup& content) {
  return content.str().find(fmt::format(" {}\"", filtered_look)) != std::string::npos;
}

}  // namespace

void timeline_place(Markup& out, const PageTimeline& timeline, std::size_t number) {
  const std::string title_id = id_of("timeline-title", number);
  out.element("h2", timeline.title, {{"id", title_id}}).line();
  out.open("section",
           {{"id", id_of("timeline", number)}, {"class", "timeline"}, {"aria-labelledby", title_id}});
  out.element("p", has_spans(timeline)
                       ? "The timeline needs JavaScript, which does not run here. `rollcall run --timeline` "
                         "draws it as text."
                       : "This report has no timeline; `rollcall run --report html=FILE` records one.");
  out.close("section").line();
}

void html_page(std::ostream& out, std::string_view title, const Markup& content,
               const std::vector<PageTimeline>& timelines) {
  Markup page;
  head(page, title);
  out << "<!DOCTYPE html>\n" << page.str() << "<style>\n" << html_style() << "</style>\n</head>\n<body>\n";
  out << "<main>\n" << content.str() << "</main>\n";
  for (std::size_t i = 0; i < timelines.size(); ++i) {
    if (has_spans(timelines[i])) {  // base64 has no character that could end the element
      out << "<script type=\"application/octet-stream\" id=\"" << id_of("timeline-data", i) << "\">"
          << packed_timeline(*timelines[i].report) << "</script>\n";
    }
  }
  if (has_filter(content) || std::ranges::any_of(timelines, has_spans)) {
    out << "<script type=\"module\">\n" << html_script() << "</script>\n";
  }
  out << "</body>\n</html>\n";
}

}  // namespace rollcall::viz
