#pragma once

// The frame of every page: one file that loads nothing, with its style, the data of its timelines, and the script that
// draws them. The page's text is in its content.

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/report.h"
#include "viz/html/markup.h"

namespace rollcall::viz {

// A timeline of a page. The report is borrowed, and may have no spans.
struct PageTimeline {
  const Report* report = nullptr;
  std::string title = "Timeline";
};

// Writes the place where the script draws the page's timeline of this number, from 0. Its initial text
// is for readers without scripts.
void timeline_place(Markup& out, const PageTimeline& timeline, std::size_t number);

// Writes the page. Includes the script only if there is a timeline to draw or a table to filter.
void html_page(std::ostream& out, std::string_view title, const Markup& content,
               const std::vector<PageTimeline>& timelines);

}  // namespace rollcall::viz
