#include "scenarios/cli/report_files.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <ostream>

#include <fmt/format.h>

#include "scenarios/json/suggest.h"
#include "viz/html_report.h"
#include "viz/json_report.h"
#include "viz/write_file.h"

namespace rollcall::cli {

struct ReportKind {
  std::string_view name;
  bool shows_timeline;
  void (*write)(const Report& report, std::ostream& out);
};

namespace {

void write_json(const Report& report, std::ostream& out) { out << viz::json_report(report); }

constexpr std::array<ReportKind, 2> kinds = {{
    {"html", true, viz::html_report},
    {"json", false, write_json},
}};

const ReportKind& kind_named(std::string_view name, std::string_view argument) {
  const auto kind = std::ranges::find(kinds, name, &ReportKind::name);
  if (kind != kinds.end()) {
    return *kind;
  }
  std::vector<std::string_view> names;
  std::ranges::transform(kinds, std::back_inserter(names), &ReportKind::name);
  const std::string_view nearest = scenario::suggest(name, names);
  throw UsageError(fmt::format("--report: '{}' is no kind of report{}; there are {}", argument,
                               nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest),
                               fmt::join(names, ", ")));
}

}  // namespace

std::vector<ReportFile> report_files(const std::vector<std::string>& arguments) {
  std::vector<ReportFile> files;
  for (const std::string& argument : arguments) {
    const std::size_t sign = argument.find('=');
    const ReportKind& kind = kind_named(argument.substr(0, sign), argument);
    if (sign == std::string::npos || sign + 1 == argument.size()) {
      throw UsageError(fmt::format("--report: which file? Write {}=FILE", kind.name));
    }
    files.push_back({&kind, argument.substr(sign + 1)});
  }
  return files;
}

bool wants_timeline(const std::vector<ReportFile>& files) {
  return std::ranges::any_of(files, [](const ReportFile& each) { return each.kind->shows_timeline; });
}

void write_reports(const CommandLine& line, const std::vector<ReportFile>& files, const Report& report) {
  for (const ReportFile& each : files) {
    viz::write_file(each.file, [&](std::ostream& out) { each.kind->write(report, out); });
    if (line.detail != viz::TextStyle::Detail::quiet) {
      remark(fmt::format("rollcall: wrote the {} report to {}", each.kind->name, each.file));
    }
  }
}

}  // namespace rollcall::cli
