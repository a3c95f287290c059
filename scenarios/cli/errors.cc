#include "scenarios/cli/errors.h"

#include <nlohmann/json.hpp>

#include "scenarios/cli/cli.h"
#include "scenarios/json/diagnostic.h"

namespace rollcall::cli {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const scenario::Diagnostic& diagnostic) {
  Json object = {{"file", diagnostic.file}};
  if (diagnostic.line > 0) {  // otherwise it is about the file as a whole
    object["line"] = diagnostic.line;
    object["column"] = diagnostic.column;
  }
  object["pointer"] = diagnostic.pointer;
  object["message"] = diagnostic.message;
  if (!diagnostic.suggestion.empty()) {
    object["suggestion"] = diagnostic.suggestion;
  }
  return object;
}

}  // namespace

void show_diagnostics(const CommandLine& line, const scenario::InvalidScenario& error) {
  if (line.format == Format::text) {
    remark(error.what());
    return;
  }
  Json errors = Json::array();
  for (const scenario::Diagnostic& diagnostic : error.diagnostics()) {
    errors.push_back(json_of(diagnostic));
  }
  const Json object = {{"schema_version", 1}, {"errors", std::move(errors)}};
  emit(line, object.dump(2, ' ', true, Json::error_handler_t::replace) + "\n");
}

}  // namespace rollcall::cli
