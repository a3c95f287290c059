#include "viz/text/excerpts.h"

#include <algorithm>
#include <utility>

#include "viz/rows/source_rows.h"

namespace rollcall::viz {

void put_excerpts(TextPage& page, const std::vector<SourceLine>& sources, const std::string& first) {
  const SourceLine* named = source_of(sources, first);
  if (named == nullptr) {
    return;
  }
  std::vector<const SourceLine*> lines;
  for (const SourceLine& line : sources) {
    if (line.path == named->path) {
      lines.push_back(&line);
    }
  }
  std::ranges::sort(lines, {}, [](const SourceLine* line) { return std::pair(line->line, line->column); });
  for (const SourceLine* line : lines) {
    const Excerpt excerpt = excerpt_of(*line);
    page.excerpt(line->line, excerpt.text, excerpt.mark);
  }
  page.frame_line();
}

}  // namespace rollcall::viz
