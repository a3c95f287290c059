#include "scenarios/test/failure_store.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/format/cases.h"
#include "scenarios/format/scenario.h"
#include "scenarios/test/state_folder.h"

namespace rollcall::scenario {
namespace {

namespace fs = std::filesystem;
using Record = nlohmann::ordered_json;

constexpr const char* failures_folder = ".rollcall/failures";

// A file has one name here, however it was written.
std::string place_of(const std::string& file) {
  std::error_code unknown;  // then it stays unchanged
  const fs::path place = fs::proximate(fs::weakly_canonical(file, unknown), unknown);
  return unknown ? file : place.generic_string();
}

// FNV-1a: one file for one schedule of one case.
std::string name_of_failure(const std::string& text) {
  std::uint64_t state = 0xcbf29ce484222325;
  for (const char c : text) {
    state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return fmt::format("{}/{:016x}.json", failures_folder, state);
}

std::optional<StoredFailure> read_failure(const std::string& path) {
  std::ifstream in(path);
  const Record object = Record::parse(in, nullptr, false);
  const auto text = [&object](const char* key) {
    return object.is_object() && object.contains(key) && object[key].is_string()
               ? object[key].get<std::string>()
               : std::string();
  };
  if (text("scenario").empty() || !object.contains("seed") || !object["seed"].is_number_unsigned()) {
    return std::nullopt;
  }
  try {
    return StoredFailure{text("scenario"), text("parameters"), object["seed"].get<std::uint64_t>(),
                         sim::parse_schedule(text("schedule")), path};
  } catch (const sim::BadSchedule&) {
    return std::nullopt;  // of a later version, or of none: ignored
  }
}

}  // namespace

bool StoredFailure::is_of(const Case& one) const {
  return parameters == one.parameters && file == place_of(one.file);
}

std::vector<StoredFailure> stored_failures() {
  std::vector<std::string> paths;
  std::error_code missing;  // then there are none
  for (const auto& entry : fs::directory_iterator(failures_folder, missing)) {
    paths.push_back(entry.path().generic_string());
  }
  std::ranges::sort(paths);
  std::vector<StoredFailure> failures;
  for (const std::string& path : paths) {
    if (std::optional<StoredFailure> failure = read_failure(path)) {
      failures.push_back(std::move(*failure));
    }
  }
  return failures;
}

void store_failure(const Scenario& scenario, std::uint64_t seed, const sim::Schedule& schedule,
                   const std::string& headline) {
  const std::string text = sim::to_text(schedule);
  const std::string place = place_of(scenario.file);
  const Record object = {{"scenario", place},
                         {"parameters", scenario.parameters},
                         {"seed", seed},
                         {"schedule", text},
                         {"headline", headline}};
  write_state(name_of_failure(fmt::format("{} {} {} {}", place, scenario.parameters, seed, text)),
              object.dump(2, ' ', true, Record::error_handler_t::replace) + "\n");
}

void forget_failure(const StoredFailure& failure) {
  std::error_code gone;  // already
  fs::remove(failure.path, gone);
}

}  // namespace rollcall::scenario
