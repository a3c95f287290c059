#include "scenarios/cli/cli.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "real/process/process.h"
#include "scenarios/cli/judged_dumps.h"
#include "scenarios/cli/pages.h"
#include "scenarios/cli/subject.h"
#include "scenarios/cli/terminal/progress.h"
#include "traces/formats/trace_reader.h"
#include "viz/base/write_file.h"
#include "viz/html/html_comparison.h"
#include "viz/html/html_report.h"
#include "viz/html/html_trace.h"

namespace rollcall::cli {

namespace {

namespace fs = std::filesystem;

using Page = std::function<void(std::ostream&)>;

Page page_of_dumps(const CommandLine& line, const std::vector<std::string>& paths) {
  auto judged = std::make_shared<const JudgedDumps>(judge_dumps(line, paths));
  return [judged](std::ostream& out) { write_page(*judged, out); };
}

Page page_of_trace(const std::vector<std::string>& paths) try {
  auto trace = std::make_shared<const Report>(traces::read_trace(paths));
  return [trace, source = fmt::format("{}", fmt::join(paths, ", "))](std::ostream& out) {
    viz::html_trace(*trace, source, out);
  };
} catch (const traces::InvalidTrace& error) {
  throw UsageError(error.what());
}

Page page_of_run(const CommandLine& line, const std::string& path) {
  Progress progress(line.progress_wish(), "reading " + path);
  auto run = std::make_shared<const Report>(load_report(path, progress));
  return [run](std::ostream& out) { viz::html_report(*run, out); };
}

Page page_of_two(const CommandLine& line, const std::string& first, const std::string& second) {
  Progress progress(line.progress_wish(), "reading " + first);
  auto before = std::make_shared<const compare::SimulatedRun>(load_run(first, progress));
  auto after = std::make_shared<const compare::SimulatedRun>(load_run(second, progress));
  return [before, after](std::ostream& out) {
    const auto claims = compare::compare_runs(before->facts, after->facts);
    viz::html_comparison({{"before", &before->report}, {"after", &after->report}, compared_facts(claims)},
                         out);
  };
}

// The kinds of pages.
enum class PageKind : std::uint8_t { run, dumps, trace };

PageKind page_kind_of(const std::string& path) {
  switch (const Subject subject = subject_of(path)) {
    case Subject::dumps:
      return PageKind::dumps;
    case Subject::trace:
      return PageKind::trace;
    case Subject::scenario:
    case Subject::report:
      return PageKind::run;
    case Subject::page:
      throw UsageError(fmt::format("'{}' is already a page; open it in a browser", path));
    case Subject::scenarios:
    case Subject::script:
    case Subject::nothing:
    case Subject::times:
      throw UsageError(fmt::format("'{}' is {}", path, advice_on(subject, path)));
  }
  return PageKind::run;
}

// Several paths are one job's dumps or traces; two runs are compared.
Page page_of(const CommandLine& line) {
  const std::vector<std::string>& paths = line.paths;
  const PageKind kind = page_kind_of(paths.front());
  const auto is_other = [kind](const std::string& path) { return page_kind_of(path) != kind; };
  if (const auto other = std::ranges::find_if(paths, is_other); other != paths.end()) {
    throw UsageError(fmt::format("'{}' and '{}' are of different kinds", paths.front(), *other));
  }
  switch (kind) {
    case PageKind::dumps:
      return page_of_dumps(line, paths);
    case PageKind::trace:
      return page_of_trace(paths);
    case PageKind::run:
      break;
  }
  if (paths.size() > 2) {
    throw UsageError("view takes one run, or two to compare; more were given");
  }
  return paths.size() == 1 ? page_of_run(line, paths[0]) : page_of_two(line, paths[0], paths[1]);
}

// A folder's name often ends with a slash.
std::string name_of(const fs::path& path) {
  const fs::path name = path.has_filename() ? path.filename() : path.parent_path().filename();
  const std::string stem = name.stem().string();
  return stem.empty() || stem == "." || stem == ".." ? "report" : stem;
}

// Uses a new folder, so that no other user of the machine can have put a link there.
std::string temporary_page(const std::string& path) {
  std::error_code error;
  std::string folder = (fs::temp_directory_path(error) / "rollcall-XXXXXX").string();
  if (error || ::mkdtemp(folder.data()) == nullptr) {
    throw viz::OutputError(fmt::format("cannot create a temporary directory: {}",
                                       error ? error.message() : std::generic_category().message(errno)));
  }
  return (fs::path(folder) / (name_of(path) + ".html")).string();
}

// Nothing is lost without a browser: the page is written, and its path is printed.
void open_in_browser(const std::string& page) {
  const int status = real::ChildProcess([&] {
                       const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
                       ::dup2(nowhere, STDOUT_FILENO);
                       ::dup2(nowhere, STDERR_FILENO);
                       real::execute({"xdg-open", page});
                     }).wait();
  if (status != 0) {
    const bool is_missing = WIFEXITED(status) && WEXITSTATUS(status) == real::no_such_program;
    remark(fmt::format("rollcall: no browser was opened: xdg-open {}",
                       is_missing ? "is not installed" : "found none"));
  }
}

}  // namespace

ExitCode view_report(const CommandLine& line) {
  const Page write = page_of(line);
  const std::string page = line.output.empty() ? temporary_page(line.paths.front()) : line.output;
  viz::write_file(page, write);
  viz::write_stdout(page + "\n");
  if (line.open) {
    open_in_browser(page);
  }
  return ExitCode::as_expected;
}

}  // namespace rollcall::cli
