#include "scenarios/cli/page_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <ostream>
#include <system_error>

#include <fmt/format.h>

#include "scenarios/json/suggest.h"
#include "sim/dist/expects.h"
#include "viz/html_report.h"
#include "viz/json_report.h"
#include "viz/write_file.h"

namespace rollcall::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 2> kinds = {"html", "json"};

PageFile page_file(const std::string& argument) {
  const std::size_t sign = argument.find('=');
  const std::string kind = argument.substr(0, sign);
  if (std::ranges::find(kinds, kind) == kinds.end()) {
    const std::string_view nearest = scenario::suggest(kind, {kinds.begin(), kinds.end()});
    throw UsageError(fmt::format("--report: '{}' is no kind of report{}; there are {}", argument,
                                 nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest),
                                 fmt::join(kinds, ", ")));
  }
  if (sign == std::string::npos || sign + 1 == argument.size()) {
    throw UsageError(fmt::format("--report: which file? Write {}=FILE", kind));
  }
  return {kind, argument.substr(sign + 1)};
}

bool are_one_file(const std::string& a, const std::string& b) {
  std::error_code missing;  // of at least one: then they are the same only by name
  return fs::absolute(a).lexically_normal() == fs::absolute(b).lexically_normal() ||
         fs::equivalent(a, b, missing);
}

}  // namespace

std::vector<PageFile> page_files(const CommandLine& line, const std::vector<std::string>& inputs) {
  std::vector<PageFile> files;
  std::ranges::transform(line.reports, std::back_inserter(files), page_file);
  std::vector<std::string> taken = inputs;
  taken.insert(taken.end(), {line.output, line.trace.file, line.real.record});
  std::erase(taken, "");
  for (const PageFile& each : files) {
    const auto other = std::ranges::find_if(
        taken, [&each](const std::string& path) { return are_one_file(path, each.file); });
    if (other != taken.end()) {
      throw UsageError(
          fmt::format("--report: '{}' is read or written already; give it a file of its own", *other));
    }
    taken.push_back(each.file);
  }
  return files;
}

bool wants_page(const std::vector<PageFile>& files) {
  return std::ranges::find(files, "html", &PageFile::kind) != files.end();
}

void write_page_files(const CommandLine& line, const std::vector<PageFile>& files,
                      const PageWriters& writers) {
  for (const PageFile& each : files) {
    const auto writer = std::ranges::find(writers, each.kind, &PageWriters::value_type::first);
    expects(writer != writers.end(), "a command writes every kind of report that it takes");
    viz::write_file(each.file, writer->second);
    if (line.detail != viz::TextStyle::Detail::quiet) {
      remark(fmt::format("rollcall: wrote the {} report to {}", each.kind, each.file));
    }
  }
}

PageWriters writers_of(const Report& report) {
  return {{"html", [&report](std::ostream& out) { viz::html_report(report, out); }},
          {"json", [&report](std::ostream& out) { out << viz::json_report(report); }}};
}

}  // namespace rollcall::cli
