#include "viz/json/json_report.h"

#include <nlohmann/json.hpp>

#include "viz/json/object_writer.h"

namespace rollcall::viz {

std::string json_report(const Report& report) {
  using Json = nlohmann::ordered_json;
  const Json object = ObjectWriter<Json>::json_of(report);
  return object.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace rollcall::viz
