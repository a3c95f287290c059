#include "scenarios/test/last_failed.h"

#include <filesystem>
#include <fstream>
#include <ostream>

#include <nlohmann/json.hpp>

#include "viz/base/write_file.h"

namespace rollcall::scenario {
namespace {

constexpr const char* state_folder = ".rollcall";
constexpr const char* file = ".rollcall/last-failed.json";

void write(const std::string& path, const std::string& text) {
  viz::write_file(path, [&text](std::ostream& out) { out << text; });
}

}  // namespace

std::set<std::string> last_failed() {
  std::ifstream in(file);
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
  std::error_code unable;  // then writing reports why
  if (std::filesystem::create_directories(state_folder, unable)) {
    write(std::string(state_folder) + "/.gitignore", "# made by `rollcall test --lf`\n*\n");
  }
  write(file, nlohmann::json(after).dump(2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace rollcall::scenario
