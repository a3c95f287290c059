// `rollcall export`: writes the dumps that a simulated job would have left behind, for the tools that read
// them.

#include <filesystem>
#include <ostream>
#include <system_error>

#include <fmt/core.h>

#include "scenarios/cli/cli.h"
#include "scenarios/cli/terminal/progress.h"
#include "scenarios/cli/watched_run.h"
#include "scenarios/recordings/recorded_run.h"
#include "traces/dumps/dump_writer.h"
#include "viz/base/write_file.h"

namespace rollcall::cli {

namespace {

namespace fs = std::filesystem;

// The name of PyTorch 2.10's files (FlightRecorder.hpp, DebugInfoWriter), without the folder.
constexpr const char* file_prefix = "comm_lib_trace_rank_";

std::string file_name(Rank rank, bool as_json) {
  return fmt::format("{}{}{}", file_prefix, rank, as_json ? ".json" : "");
}

struct Arguments {
  std::string file;
  std::string folder;
};

// FILE with --flight-recorder DIR, or `flight-recorder FILE` with -o DIR.
Arguments arguments_of(const CommandLine& line) {
  const bool names_kind = line.paths.size() == 2 && line.paths.front() == "flight-recorder";
  const std::string& folder = names_kind ? line.output : line.dumps.folder;
  if (folder.empty() || line.paths.size() != (names_kind ? 2 : 1)) {
    throw UsageError("write `export --flight-recorder DIR FILE`, or `export flight-recorder FILE -o DIR`");
  }
  return {line.paths.back(), folder};
}

// A rank that leaves no dump must not be hidden by an older run's dump, and readers read all files of a
// folder.
void check_folder(const std::string& folder) {
  std::error_code missing;  // then there are no old dumps
  for (fs::directory_iterator it(folder, missing), end; !missing && it != end; it.increment(missing)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(file_prefix)) {
      throw UsageError(fmt::format(
          "'{}' already holds dumps ({}); empty it first, or readers will mix the two runs", folder, name));
    }
  }
}

void write_dumps(const std::string& folder, const check::JobDump& job, bool as_json) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw viz::OutputError(fmt::format("cannot create the directory '{}': {}", folder, error.message()));
  }
  for (const check::RankDump& dump : job.ranks) {
    const std::string bytes =
        as_json ? traces::write_dump_json(job, dump) : traces::write_dump_pickle(job, dump);
    viz::write_file((fs::path(folder) / file_name(dump.rank, as_json)).string(),
                    [&bytes](std::ostream& out) { out << bytes; });
  }
}

std::string summary(const scenario::RecordedRun& run, const std::string& folder) {
  const std::string gone =
      run.without_dump.empty()
          ? ""
          : fmt::format("; {} left none, because their process was gone", ranks_phrase(run.without_dump));
  return fmt::format("rollcall: wrote {} Flight Recorder dumps to {}{}", run.job.ranks.size(), folder, gone);
}

}  // namespace

ExitCode export_dumps(const CommandLine& line) {
  const auto [file, folder] = arguments_of(line);
  check_folder(folder);
  Progress progress(line.progress_wish(), "starting");
  const scenario::RecordedRun run = scenario::record_run(load_watched(file, progress), line.seed);
  progress.say(fmt::format("writing dumps to {}", folder));
  write_dumps(folder, run.job, line.dumps.encoding == "json");
  if (line.detail != viz::TextStyle::Detail::quiet) {
    remark(summary(run, folder));
  }
  return ExitCode::as_expected;
}

}  // namespace rollcall::cli
