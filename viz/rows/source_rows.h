#pragma once

// The places in source files that a report points at, if their files could be read.

#include <string>
#include <vector>

#include "sim/report/diagnosis.h"

namespace rollcall::viz {

// The sites worth showing, at most three: the main one first, then the other calls that are compared.
std::vector<std::string> sites_to_show(const Verdict& verdict);
// The same for a diagnosis, as calls whose labels are the functions that contain them.
std::vector<Call> calls_to_show(const Diagnosis& diagnosis);

// The source line of a site. Null if it could not be read.
const SourceLine* source_of(const std::vector<SourceLine>& sources, const std::string& site);

// "train.py:12:7" with the file's path as it was given, so that an editor finds it; the site itself if the path is
// unknown.
std::string path_of_site(const std::vector<SourceLine>& sources, const std::string& site);

// The line as it is shown: blanks instead of tabs, without most of its indentation, at most as long as a page is wide;
// and the column, from 0, of the mark below it. -1: no mark.
struct Excerpt {
  std::string text;
  int mark = -1;
};
Excerpt excerpt_of(const SourceLine& line);

}  // namespace rollcall::viz
