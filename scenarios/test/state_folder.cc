#include "scenarios/test/state_folder.h"

#include <filesystem>
#include <fstream>
#include <ostream>

#include <nlohmann/json.hpp>

#include "viz/base/write_file.h"

namespace rollcall::scenario {
namespace {

constexpr const char* last_failed_file = ".rollcall/last-failed.json";

void write_text_file(const std::string& path, const std::string& text) {
  viz::write_file(path, [&text](std::ostream& out) { out << text; });
}

}  // namespace

void write_state(const std::string& path, const std::string& text) {
  std::error_code unable;  // then writing reports why
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), unable);
  if (constexpr const char* ignored = ".rollcall/.gitignore"; !std::filesystem::exists(ignored, unable)) {
    write_text_file(ignored, "# written by `rollcall test`\n/.gitignore\n/failures/\n/last-failed.json\n");
  }
  write_text_file(path, text);
}

std::set<std::string> last_failed() {
  std::ifstream in(last_failed_file);
  const nlohmann::json list = nlohmann::json::parse(in, nullptr, false);
  std::set<std::string> addresses;
  for (const nlohmann::json& each : list.is_array() ? list : nlohmann::json::array()) {
    if (each.is_string()) {
      addresses.insert(each.get<std::string>());
    }
  }
  return addresses;
}

void remember_failures(const viz::TestRun& run) {
  const std::set<std::string> before = last_failed();
  std::set<std::string> after = before;
  for (const viz::TestOutcome& outcome : run.outcomes) {
    if (outcome.status == viz::TestOutcome::Status::passed) {
      after.erase(outcome.address());
    } else {
      after.insert(outcome.address());
    }
  }
  if (after == before) {
    return;
  }
  write_state(last_failed_file,
              nlohmann::json(after).dump(2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace rollcall::scenario
