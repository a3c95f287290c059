#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "real/doctor.h"
#include "scenarios/cli/cli.h"

namespace rollcall::cli {
namespace {

std::string text_of(const std::vector<real::Diagnosis>& diagnoses) {
  std::size_t width = 0;
  for (const real::Diagnosis& diagnosis : diagnoses) {
    width = std::max(width, diagnosis.subject.size());
  }
  std::string text;
  for (const real::Diagnosis& diagnosis : diagnoses) {
    text += fmt::format("{:<{}}  {}\n", diagnosis.subject, width, diagnosis.state);
    if (!diagnosis.meaning.empty()) {
      text += fmt::format("{:<{}}  {}\n", "", width, diagnosis.meaning);
    }
  }
  return text;
}

std::string json_of(const std::vector<real::Diagnosis>& diagnoses) {
  nlohmann::ordered_json document{{"schema_version", 1}, {"diagnoses", nlohmann::ordered_json::array()}};
  for (const real::Diagnosis& diagnosis : diagnoses) {
    document["diagnoses"].push_back(
        {{"subject", diagnosis.subject}, {"state", diagnosis.state}, {"meaning", diagnosis.meaning}});
  }
  return document.dump(2) + "\n";
}

}  // namespace

ExitCode examine_machine(const CommandLine& line) {
  const std::vector<real::Diagnosis> diagnoses = real::examine();
  emit(line, line.format == Format::json ? json_of(diagnoses) : text_of(diagnoses));
  return ExitCode::as_expected;
}

}  // namespace rollcall::cli
