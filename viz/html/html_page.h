#pragma once

// The frame of every page: one file that loads nothing, with its style, its timelines' data and the script that
// draws them. What a page says stands in its content.

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/report.h"
#include "viz/html/markup.h"

namespace rollcall::viz {

// A timeline of a page. The report is borrowed, and may have none.
struct PageTimeline {
  const Report* report = nullptr;
  std::string title = "Timeline";
};

// The place where the script draws the page's timeline of this number, from 0. What stands there until it does
// is for readers without scripts.
void timeline_place(Markup& out, const PageTimeline& timeline, std::size_t number);

// Writes the page. The script is in it only where there is something to draw, or a table to filter.
void html_page(std::ostream& out, std::string_view title, const Markup& content,
               const std::vector<PageTimeline>& timelines);

}  // namespace rollcall::viz
