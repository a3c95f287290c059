#include "scenarios/cli/cli.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/json/diagnostic.h"
#include "scenarios/scenario.h"

namespace rollcall::cli {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* default_folder = "scenarios";

struct Entry {
  std::string file;
  std::string name;
  std::string verdict;
  std::string kind;  // may be empty
};

bool is_scenario_file(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".json") && !name.ends_with(".schema.json");
}

// Sorted: the order of a directory is whatever the file system makes it.
std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && is_scenario_file(entry.path())) {
      files.push_back(entry.path().generic_string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> files_of(const std::vector<std::string>& paths) try {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code unreadable;
    if (!fs::is_directory(path, unreadable)) {
      files.push_back(path);  // whatever is wrong with it, the loader says it better
      continue;
    }
    const std::vector<std::string> found = files_in(path);
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
} catch (const fs::filesystem_error& error) {
  throw UsageError(fmt::format("cannot list '{}': {}", error.path1().string(), error.code().message()));
}

// Where to look. Without a PATH in a place without scenarios, nowhere.
std::vector<std::string> selection(const CommandLine& line) {
  if (!line.paths.empty()) {
    return line.paths;
  }
  return fs::is_directory(default_folder) ? std::vector<std::string>{default_folder}
                                          : std::vector<std::string>{};
}

Entry read_entry(const std::string& file) {
  const scenario::Scenario loaded = scenario::load_scenario(file);
  return {file, loaded.name, loaded.expect.verdict, loaded.expect.kind.value_or("")};
}

std::string expectation(const Entry& entry) {
  return entry.kind.empty() || entry.kind == entry.verdict ? entry.verdict : entry.verdict + "/" + entry.kind;
}

std::string text_of(const std::vector<Entry>& entries) {
  std::size_t file_width = 0;
  std::size_t expectation_width = 0;
  for (const Entry& entry : entries) {
    file_width = std::max(file_width, viz::display_width(entry.file));
    expectation_width = std::max(expectation_width, expectation(entry).size());
  }
  std::string text;
  for (const Entry& entry : entries) {
    text += fmt::format("{:<{}}  {:<{}}  {}\n", viz::printable(entry.file), file_width, expectation(entry),
                        expectation_width, viz::printable(entry.name));
  }
  return text;
}

std::string json_of(const std::vector<Entry>& entries) {
  Json list = Json::array();
  for (const Entry& entry : entries) {
    Json object = {{"file", entry.file}, {"name", entry.name}, {"verdict", entry.verdict}};
    if (!entry.kind.empty()) {
      object["kind"] = entry.kind;
    }
    list.push_back(std::move(object));
  }
  return list.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace

// Lists what can be read and says what cannot.
ExitCode list_scenarios(const CommandLine& line) {
  const std::vector<std::string> paths = selection(line);
  std::vector<Entry> entries;
  bool all_valid = true;
  for (const std::string& file : files_of(paths)) {
    try {
      entries.push_back(read_entry(file));
    } catch (const scenario::InvalidScenario& error) {
      remark(error.what());
      all_valid = false;
    }
  }
  if (entries.empty() && all_valid) {
    const std::string where =
        paths.empty() ? fmt::format("there is no folder '{}' here; name a file or a folder", default_folder)
                      : fmt::format("no scenario files in {}", fmt::join(paths, ", "));
    remark("rollcall: nothing selected: " + where);
    return ExitCode::nothing_selected;
  }
  emit(line, line.format == Format::json ? json_of(entries) : text_of(entries));
  return all_valid ? ExitCode::as_expected : ExitCode::invalid;
}

}  // namespace rollcall::cli
