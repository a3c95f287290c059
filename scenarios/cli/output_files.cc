#include "scenarios/cli/output_files.h"

#include <filesystem>
#include <system_error>

#include <fmt/core.h>

namespace rollcall::cli {

namespace {

namespace fs = std::filesystem;

struct OutputFile {
  std::string option;
  std::string path;
};

std::vector<OutputFile> output_files(const CommandLine& line, const std::vector<ReportFile>& reports) {
  std::vector<OutputFile> files = {
      {"-o", line.output}, {"--record", line.real.record}, {"--calibrate", line.real.calibrate}};
  for (const std::string& trace : line.trace.files) {
    files.push_back({"--trace", trace});
  }
  for (const ReportFile& report : reports) {
    files.push_back({"--report", report.file});  // empty for a kind that goes to the log
  }
  std::erase_if(files, [](const OutputFile& each) { return each.path.empty(); });
  return files;
}

bool are_one_file(const std::string& a, const std::string& b) {
  std::error_code missing;  // if one of them is missing, they are the same only by name
  return fs::absolute(a).lexically_normal() == fs::absolute(b).lexically_normal() ||
         fs::equivalent(a, b, missing);
}

}  // namespace

void require_files_of_their_own(const CommandLine& line, const std::vector<ReportFile>& reports,
                                const std::vector<std::string>& inputs) {
  std::vector<OutputFile> seen;
  for (const OutputFile& file : output_files(line, reports)) {
    for (const std::string& input : inputs) {
      if (!input.empty() && are_one_file(input, file.path)) {
        throw UsageError(fmt::format("{} would overwrite '{}', which is an input", file.option, file.path));
      }
    }
    for (const OutputFile& other : seen) {
      if (are_one_file(other.path, file.path)) {
        throw UsageError(fmt::format("{} and {} both write '{}'; give them different files", other.option,
                                     file.option, file.path));
      }
    }
    seen.push_back(file);
  }
}

void require_folders(const CommandLine& line, const std::vector<ReportFile>& reports) {
  for (const OutputFile& each : output_files(line, reports)) {
    const fs::path folder = fs::path(each.path).parent_path();
    std::error_code missing;
    if (!folder.empty() && !fs::is_directory(folder, missing)) {
      throw UsageError(
          fmt::format("{}: there is no directory '{}' for '{}'", each.option, folder.string(), each.path));
    }
  }
}

}  // namespace rollcall::cli
