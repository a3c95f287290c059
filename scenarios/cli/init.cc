#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "scenarios/cli/cli.h"
#include "scenarios/cli/starter.h"
#include "scenarios/json/schema.h"
#include "viz/base/write_file.h"

namespace rollcall::cli {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Starter {
  const char* path;
  const char* ci;  // "github", "gitlab"; empty: for any CI
  std::string_view (*text)();
  const char* what;
  const char* if_kept;  // what to do if the user already has this file; may be empty
};

constexpr std::array<Starter, 5> starters = {{
    {"scenarios/training_loop.rollcall.json", "", starter_scenario, "a first scenario to run and to modify",
     ""},
    {"scenarios/scenario-v1.schema.json", "", scenario::schema_text, "completion and help for editors",
     "`rollcall schema -o` updates it"},
    {".github/workflows/rollcall.yml", "github", starter_github, "runs the scenarios on GitHub", ""},
    {".gitlab/rollcall.yml", "gitlab", starter_gitlab, "runs the scenarios on GitLab", ""},
    {".gitlab-ci.yml", "gitlab", starter_gitlab_ci, "includes it",
     "add to it: include: [{ local: .gitlab/rollcall.yml }]"},
}};

// The outcome for one starter.
struct StarterFile {
  const Starter* starter = nullptr;
  bool written = false;
};

[[noreturn]] void cannot_write(const fs::path& path, int error) {
  throw viz::OutputError(
      fmt::format("cannot write '{}': {}", path.string(), std::generic_category().message(error)));
}

// Writes all of `text` to a new file. Returns false if a file of that name exists, which stays unchanged.
bool create(const fs::path& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) {
    if (errno == EEXIST) {
      return false;
    }
    cannot_write(path, errno);
  }
  int error = 0;
  while (!text.empty() && error == 0) {
    const ssize_t count = ::write(file, text.data(), text.size());
    error = count < 0 && errno != EINTR ? errno : 0;
    text.remove_prefix(count < 0 ? 0 : static_cast<std::size_t>(count));
  }
  if (::close(file) != 0 && error == 0) {
    error = errno;
  }
  if (error != 0) {
    ::unlink(path.c_str());
    cannot_write(path, error);
  }
  return true;
}

void make_folders(const fs::path& folder) try {
  fs::create_directories(folder);
} catch (const fs::filesystem_error& error) {
  cannot_write(folder, error.code().value());
}

// Writes all of them or, if one cannot be written, none.
std::vector<StarterFile> write_starters(const fs::path& root, const std::string& ci) {
  std::vector<StarterFile> outcomes;
  try {
    for (const Starter& starter : starters) {
      const std::string_view wanted = starter.ci;
      if (wanted.empty() || ci == "all" || ci == wanted) {
        const fs::path path = root / starter.path;
        make_folders(path.parent_path());
        outcomes.push_back({&starter, create(path, starter.text())});
      }
    }
  } catch (const viz::OutputError&) {
    for (const StarterFile& each : outcomes) {
      if (each.written) {
        ::unlink((root / each.starter->path).c_str());
      }
    }
    throw;
  }
  return outcomes;
}

std::string text_of(const std::vector<StarterFile>& outcomes, const std::string& folder) {
  std::size_t width = 0;
  for (const StarterFile& each : outcomes) {
    width = std::max(width, std::string_view(each.starter->path).size());
  }
  std::string text;
  bool has_ci = false;
  for (const auto& [starter, written] : outcomes) {
    has_ci = has_ci || *starter->ci != '\0';
    const std::string_view advice = starter->if_kept;
    const std::string why = fmt::format("already exists{}{}", advice.empty() ? "" : "; ", advice);
    text += fmt::format("{}  {:<{}}  {}\n", written ? "wrote" : "kept ", starter->path, width,
                        written ? starter->what : why);
  }
  const std::string place = folder == "." ? "" : fmt::format("cd {} && ", folder);
  text += fmt::format("next   {}rollcall test scenarios\n", place);
  return has_ci ? text + "       put rollcall's wheel into .rollcall/: CI installs it from there\n" : text;
}

std::string json_of(const std::vector<StarterFile>& outcomes) {
  Json object = {{"wrote", Json::array()}, {"kept", Json::array()}};
  for (const StarterFile& each : outcomes) {
    object[each.written ? "wrote" : "kept"].push_back(each.starter->path);
  }
  return object.dump(2) + "\n";
}

}  // namespace

ExitCode init_repository(const CommandLine& line) {
  const std::string folder = line.file.empty() ? "." : line.file;
  std::error_code unreadable;
  if (!fs::is_directory(folder, unreadable)) {
    throw UsageError(fmt::format("'{}' is not a directory; create it, or pass the repository root", folder));
  }
  const std::vector<StarterFile> outcomes = write_starters(folder, line.ci);
  emit(line, line.format == Format::json ? json_of(outcomes) : text_of(outcomes, folder));
  return ExitCode::as_expected;
}

}  // namespace rollcall::cli
