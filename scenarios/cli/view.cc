#include "scenarios/cli/cli.h"

#include <algorithm>
#include <cerrno>
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

// What its page shows: dumps, a trace, or a run, which a report has as well.
Subject shown_subject(const std::string& path) {
  const Subject subject = subject_of(path);
  if (subject == Subject::page) {
    throw UsageError(fmt::format("'{}' is already a page; open it in a browser", path));
  }
  if (subject == Subject::scenario || subject == Subject::report) {
    return Subject::scenario;
  }
  if (subject != Subject::dumps && subject != Subject::trace) {
    throw UsageError(fmt::format("'{}' is {}", path, advice_on(subject, path)));
  }
  return subject;
}

// Several paths are one job's dumps or traces; two runs are compared.
Page page_of(const CommandLine& line) {
  const std::vector<std::string>& paths = line.paths;
  const Subject subject = shown_subject(paths.front());
  const auto is_other = [subject](const std::string& path) { return shown_subject(path) != subject; };
  if (const auto other = std::ranges::find_if(paths, is_other); other != paths.end()) {
    throw UsageError(fmt::format("'{}' and '{}' are of different kinds", paths.front(), *other));
  }
  if (subject == Subject::dumps) {
    return page_of_dumps(line, paths);
  }
  if (subject == Subject::trace) {
    return page_of_trace(paths);
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
