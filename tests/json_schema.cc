#include "tests/json_schema.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

namespace rollcall::test {

std::string objections(const nlohmann::json& schema, const nlohmann::json& document) {
  valijson::Schema compiled;
  valijson::SchemaParser(valijson::SchemaParser::kDraft7)
      .populateSchema(valijson::adapters::NlohmannJsonAdapter(schema), compiled);
  valijson::ValidationResults results;
  valijson::Validator(valijson::Validator::kStrongTypes)
      .validate(compiled, valijson::adapters::NlohmannJsonAdapter(document), &results);
  std::string text;
  for (valijson::ValidationResults::Error error; results.popError(error);) {
    text += fmt::format("{}: {}\n", fmt::join(error.context, ""), error.description);
  }
  return text;
}

}  // namespace rollcall::test
