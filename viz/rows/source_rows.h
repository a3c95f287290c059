#pragma once

// The places in source files that a report points at, as far as somebody has read them.

#include <string>
#include <vector>

#include "sim/report/diagnosis.h"

namespace rollcall::viz {

// The sites worth showing, at most three: where to look first, then the other calls that are compared.
std::vector<std::string> sites_to_show(const Verdict& verdict);
// The same of a diagnosis, as calls, whose labels are the functions they stand in.
std::vector<Call> calls_to_show(const Diagnosis& diagnosis);

// Of a site: its line of source. Null where nobody could read it.
const SourceLine* source_of(const std::vector<SourceLine>& sources, const std::string& site);

// "train.py:12:7" with the file's path as it was given, so that an editor finds it; the site itself where that is
// not known.
std::string path_of_site(const std::vector<SourceLine>& sources, const std::string& site);

// The line as it is shown: blanks instead of tabs, without most of its indentation, not longer than a page is wide;
// and the column, from 0, below which the mark stands. -1: none.
struct Excerpt {
  std::string text;
  int mark = -1;
};
Excerpt excerpt_of(const SourceLine& line);

}  // namespace rollcall::viz
