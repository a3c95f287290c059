#include "scenarios/cli/dump_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "scenarios/cli/cli.h"
#include "scenarios/cli/subject.h"
#include "scenarios/cli/terminal/progress.h"
#include "traces/formats/trace_reader.h"

namespace rollcall::cli {

namespace {

constexpr std::size_t problems_max = 20;
constexpr std::size_t unknown_max = 3;

void show(const std::vector<std::string>& remarks) {
  for (std::size_t i = 0; i < remarks.size() && i < problems_max; ++i) {
    remark("rollcall: " + viz::printable(remarks[i]));
  }
  if (remarks.size() > problems_max) {
    remark(fmt::format("rollcall: {} more files were not used", remarks.size() - problems_max));
  }
}

void show_unknown(const std::vector<std::string>& files) {
  if (files.empty()) {
    return;
  }
  const std::size_t shown = std::min(files.size(), unknown_max);
  remark(viz::printable(
      fmt::format("rollcall: of no known format, and not used: {}{}",
                  fmt::join(files.begin(), files.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                  shown < files.size() ? fmt::format(" and {} more", files.size() - shown) : "")));
}

}  // namespace

std::vector<std::string> remarks_of(const std::vector<traces::FileProblem>& problems) {
  std::vector<std::string> remarks;
  for (const traces::FileProblem& problem : problems) {
    remarks.push_back(fmt::format("{}: {}", problem.file, problem.message));
  }
  return remarks;
}

traces::ReadResult read_dumps(const CommandLine& line, const std::vector<std::string>& paths) try {
  traces::ReadResult input;
  {
    Progress progress(line.progress_wish(), "reading dumps");
    input = traces::read_recordings(paths, [&progress](std::size_t done, std::size_t all) {
      progress.say(bar_text("reading dumps", done, all));
    });
  }
  show(remarks_of(input.problems));
  show_unknown(input.unknown);
  return input;
} catch (const std::filesystem::filesystem_error& error) {
  throw UsageError(fmt::format("cannot list '{}': {}", error.path1().string(), error.code().message()));
}

ExitCode no_dumps(const traces::ReadResult& input, const std::vector<std::string>& paths) {
  const bool had_problems = !input.problems.empty();
  std::error_code missing;
  if (paths.size() == 1 && std::filesystem::exists(paths.front(), missing)) {
    const Subject subject = subject_of(paths.front());
    // If nothing can be read from the file, the reader has said why.
    const bool says_something =
        std::filesystem::is_directory(paths.front(), missing) || !traces::beginning_of(paths.front()).empty();
    if (says_something && subject != Subject::dumps && subject != Subject::trace &&
        subject != Subject::nothing) {
      throw UsageError(fmt::format("'{}' is {}", paths.front(), advice_on(subject, paths.front())));
    }
  }
  remark(fmt::format("rollcall: {}: no dumps, traces or logs of a job in {}",
                     had_problems ? "error" : "nothing selected", fmt::join(paths, ", ")));
  if (!had_problems) {
    remark(
        "rollcall: hint: a log tells something once a call failed or timed out in it; while a job hangs, "
        "ask its processes: py-spy dump --pid PID, or `rollcall attach PID`");
  }
  return had_problems ? ExitCode::invalid : ExitCode::nothing_selected;
}

}  // namespace rollcall::cli
