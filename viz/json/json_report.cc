#include "viz/json/json_report.h"

#include "viz/json/object_writer.h"

namespace rollcall::viz {

std::string json_report(const Report& report) {
  using Json = ObjectWriter::Json;
  return ObjectWriter::json_of(report).dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace rollcall::viz
