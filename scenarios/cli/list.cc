#include "scenarios/cli/cli.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/format/scenario.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/test/collect.h"

namespace rollcall::cli {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Entry {
  std::string address;
  std::string file;
  std::string name;
  std::string verdict;
  std::string kind;  // may be empty
};

Entry read_entry(const std::string& address) {
  const scenario::Scenario loaded = scenario::load_scenario(address);
  const std::optional<FindingKind> kind = loaded.expect.kind;
  return {loaded.address(), loaded.file, loaded.name, loaded.expect.verdict,
          kind ? std::string(to_string(*kind)) : ""};
}

std::string expectation(const Entry& entry) {
  return entry.kind.empty() || entry.kind == entry.verdict ? entry.verdict : entry.verdict + "/" + entry.kind;
}

std::string text_of(const std::vector<Entry>& entries) {
  std::size_t address_width = 0;
  std::size_t expectation_width = 0;
  for (const Entry& entry : entries) {
    address_width = std::max(address_width, viz::display_width(entry.address));
    expectation_width = std::max(expectation_width, expectation(entry).size());
  }
  std::string text;
  for (const Entry& entry : entries) {
    text += fmt::format("{:<{}}  {:<{}}  {}\n", viz::printable(entry.address), address_width,
                        expectation(entry), expectation_width, viz::printable(entry.name));
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

// Lists the scenarios that can be read, and reports the others.
ExitCode list_scenarios(const CommandLine& line) {
  std::vector<Entry> entries;
  bool all_valid = true;
  for (const scenario::Collected& each : scenario::collect(line.paths)) {
    try {
      entries.push_back(read_entry(each.one.parameters.empty() ? each.one.file : each.one.address()));
    } catch (const scenario::InvalidScenario& error) {
      remark(error.what());
      all_valid = false;
    }
  }
  if (entries.empty() && all_valid) {
    const bool has_folder = fs::is_directory(scenario::default_folder);
    const std::string where =
        !line.paths.empty() ? fmt::format("no scenario files in {}", fmt::join(line.paths, ", "))
        : has_folder        ? fmt::format("no scenario files in {}", scenario::default_folder)
                            : fmt::format("there is no directory '{}' here; name a file or a directory",
                                          scenario::default_folder);
    remark("rollcall: nothing selected: " + where);
    return ExitCode::nothing_selected;
  }
  emit(line, line.format == Format::json ? json_of(entries) : text_of(entries));
  return all_valid ? ExitCode::as_expected : ExitCode::invalid;
}

}  // namespace rollcall::cli
