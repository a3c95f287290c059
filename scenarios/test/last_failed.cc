#include "scenarios/test/last_failed.h"

#include <fstream>

#include <nlohmann/json.hpp>

#include "scenarios/test/state_folder.h"

namespace rollcall::scenario {

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
