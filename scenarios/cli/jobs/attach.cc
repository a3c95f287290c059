// `rollcall attach`: asks a running job that we did not start where it is.

#include <filesystem>
#include <optional>

#include <fmt/core.h>

#include "real/process/process.h"
#include "scenarios/cli/cli.h"
#include "scenarios/watch/attach.h"

namespace rollcall::cli {

namespace {

std::vector<watch::Target> targets_of(const CommandLine& line) {
  std::vector<watch::Target> targets;
  for (const std::string& text : line.paths) {
    const std::optional<watch::Target> target = watch::parse_target(text);
    if (!target) {
      throw UsageError(
          fmt::format("'{}' is not something to attach to: give host:port of torch's debug server, a process "
                      "id, or ras:host",
                      text));
    }
    targets.push_back(*target);
  }
  return targets;
}

}  // namespace

ExitCode attach_to_job(const CommandLine& line) {
  constexpr Duration apart = 2 * second;
  const std::vector<watch::Target> targets = targets_of(line);
  std::optional<real::PrivateFolder> folder;
  const std::string place = line.record.records.empty() ? folder.emplace().path() : line.record.records;
  const watch::Collected collected = watch::collect(targets, place, apart);
  for (const std::string& got : collected.got) {
    remark("rollcall: got " + got);
  }
  for (const std::string& missing : collected.missing) {
    remark("rollcall: nothing from " + missing);
  }
  if (collected.got.empty()) {
    remark("rollcall: nothing selected: nothing answered");
    return ExitCode::nothing_selected;
  }
  CommandLine read = line;
  read.paths = {place + "/first"};  // named separately, because equal files are of two moments here
  if (!std::filesystem::is_empty(place + "/later")) {
    read.paths.push_back(place + "/later");
  }
  const ExitCode code = diagnose(read);
  if (folder && code != ExitCode::as_expected) {
    remark("rollcall: the files that the evidence names are removed now; --records DIR keeps them");
  }
  return code;
}

}  // namespace rollcall::cli
