#include "viz/ci/test_json.h"

#include <nlohmann/json.hpp>

#include "viz/json/object_writer.h"

namespace rollcall::viz {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const TestOutcome& outcome) {
  Json object = outcome.json.empty() ? Json{{"schema_version", 1}} : Json::parse(outcome.json);
  ObjectWriter writer(object);
  writer("file", outcome.file);
  writer.some("case", outcome.title);
  writer("status", to_string(outcome.status));
  if (!object.contains("unmet")) {
    writer.some("problems", outcome.problems);
  }
  return object;
}

}  // namespace

std::string test_json(const TestRun& run) {
  Json list = Json::array();
  for (const TestOutcome& outcome : run.outcomes) {
    list.push_back(json_of(outcome));
  }
  return list.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace rollcall::viz
