#pragma once

// --report html=FILE and json=FILE of commands that have no run to report, or more than one: how each kind is
// written is the command's business.

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/cli/cli.h"
#include "sim/report/report.h"

namespace rollcall::cli {

struct PageFile {
  std::string kind;  // "html" or "json"
  std::string file;
};

using PageWriters = std::vector<std::pair<std::string_view, std::function<void(std::ostream&)>>>;

// What stands behind --report. Throws UsageError: for other kinds, a file that is among `inputs` or the
// command's other outputs, a file named twice. To be asked before anything runs.
std::vector<PageFile> page_files(const CommandLine& line, const std::vector<std::string>& inputs);

bool wants_page(const std::vector<PageFile>& files);

// Writes them, each complete or not at all, and says so on standard error unless `line` is quiet. Throws
// viz::OutputError.
void write_page_files(const CommandLine& line, const std::vector<PageFile>& files,
                      const PageWriters& writers);

// Of one run. The report is borrowed.
PageWriters writers_of(const Report& report);

}  // namespace rollcall::cli
