#include "scenarios/test/collect.h"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/json_reader.h"
#include "sim/base/ascii.h"

namespace rollcall::scenario {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.size() > 1 && name.front() == '.';
}

// Any file may be named .json: a file in a folder counts as a scenario if it has what a program needs, or follows our
// schema, or cannot be read at all.
bool says_scenario(const std::string& file) try {
  const SourceText source = read_source(file);
  const JsonTree tree = read_json(source);
  const Json root = tree.root();
  const auto schema = root.find("$schema");
  const bool names_schema = schema && schema->is(JsonType::string) &&
                            schema->text().find("scenario-v1.schema.json") != std::string_view::npos;
  return names_schema || root.find("program") || root.find("programs") || root.find("world_size");
} catch (const InvalidScenario&) {
  return true;
}

std::vector<Collected> cases_in(const std::string& file) try {
  std::vector<Collected> found;
  for (Case& each : cases_of(file)) {
    found.push_back({std::move(each), {}});
  }
  return found;
} catch (const InvalidScenario& error) {
  return {{Case{.file = file, .name = {}, .parameters = {}, .tags = {}}, error.what()}};
}

std::vector<Collected> collect_file(const std::string& path) {
  const CaseAddress address = parse_address(path);
  std::error_code ignored;  // a file that cannot be accessed does not exist
  if (!fs::exists(address.file, ignored)) {
    throw NotFound(fmt::format("'{}': no such file or directory", address.file));
  }
  std::vector<Collected> found = cases_in(address.file);
  if (!found.front().unreadable.empty()) {
    return found;
  }
  std::erase_if(found, [&](const Collected& each) { return !each.one.matches(address.selection); });
  if (found.empty()) {
    throw NotFound(fmt::format("'{}' has no case '{}'; `rollcall test --list {}` lists its cases",
                               address.file, address.selection, address.file));
  }
  return found;
}

// Every file below `folder` that looks like a scenario, sorted.
std::vector<std::string> scenario_files_in(const std::string& folder) {
  std::vector<std::string> files;
  const auto end = fs::recursive_directory_iterator();
  for (auto entry = fs::recursive_directory_iterator(folder); entry != end; ++entry) {
    if (entry->is_directory() && is_hidden(entry->path())) {
      entry.disable_recursion_pending();  // .git, .rollcall
      continue;
    }
    const std::string name = entry->path().filename().string();
    if (entry->is_regular_file() && name.ends_with(".json") && !name.ends_with(".schema.json")) {
      files.push_back(entry->path().lexically_normal().generic_string());
    }
  }
  std::ranges::sort(files);
  return files;
}

std::vector<Collected> collect_folder(const std::string& folder) {
  std::vector<Collected> found;
  for (const std::string& file : scenario_files_in(folder)) {
    if (says_scenario(file)) {
      std::vector<Collected> cases = cases_in(file);
      std::ranges::move(cases, std::back_inserter(found));
    }
  }
  return found;
}

bool has_keyword(const Case& one, const std::string& word) {
  const auto contains = [&word](const std::string& text) { return contains_ignoring_case(text, word); };
  return contains(one.file) || contains(one.title()) || std::ranges::any_of(one.tags, contains);
}

}  // namespace

std::vector<Collected> collect(const std::vector<std::string>& paths) try {
  if (paths.empty() && fs::is_directory(default_folder)) {
    return collect_folder(default_folder);
  }
  std::vector<Collected> all;
  std::set<std::string> known;
  for (const std::string& path : paths) {
    std::error_code ignored;
    for (Collected& each : fs::is_directory(path, ignored) ? collect_folder(path) : collect_file(path)) {
      if (known.insert(each.one.address()).second) {
        all.push_back(std::move(each));
      }
    }
  }
  return all;
} catch (const fs::filesystem_error& error) {
  throw NotFound(fmt::format("cannot list '{}': {}", error.path1().string(), error.code().message()));
}

std::vector<Collected> select(std::vector<Collected> all, const Selection& selection) {
  std::erase_if(all, [&](const Collected& each) {
    const Case& one = each.one;
    const bool is_chosen =
        selection.keywords.evaluate([&](const std::string& word) { return has_keyword(one, word); }) &&
        selection.tags.evaluate(
            [&](const std::string& word) { return std::ranges::count(one.tags, word) > 0; });
    const bool is_wanted = selection.addresses.empty() || selection.addresses.contains(one.address());
    return !is_chosen || !is_wanted;
  });
  return all;
}

}  // namespace rollcall::scenario
