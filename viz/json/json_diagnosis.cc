#include "viz/json/json_diagnosis.h"

#include <nlohmann/json.hpp>

#include "viz/json/object_writer.h"

namespace rollcall::viz {

std::string json_diagnosis(const Diagnosis& diagnosis, const Remarks& remarks) {
  using Json = nlohmann::ordered_json;
  Json object = ObjectWriter<Json>::json_of(diagnosis);
  ObjectWriter(object).some("remarks", remarks);
  return object.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace rollcall::viz
