#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "real/backends/doctor.h"
#include "scenarios/cli/cli.h"
#include "scenarios/prove/prove.h"
#include "viz/base/write_file.h"

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

ExitCode prove_machine(const CommandLine& line) {
  const prove::Plan plan = prove::plan(line.real.backend);
  // Each line when its case is over: on a GPU the cases take minutes.
  const bool shows_at_once = line.format == Format::text && line.output.empty();
  std::string text;
  const auto show = [&](const std::string& lines) {
    if (shows_at_once) {
      emit(line, lines);
    } else {
      text += lines;
    }
  };
  show(prove::text_of(plan));
  const prove::Proofs proofs = prove::prove(plan, [&](const prove::Proofs& so_far) {
    show(prove::text_of(plan, so_far.proofs.back()));
    if (!line.real.record.empty()) {  // after each case: a signal may end this before the last one
      viz::write_file(line.real.record, [&](std::ostream& out) { out << prove::json_of(so_far); });
    }
  });
  if (!shows_at_once) {
    emit(line, line.format == Format::json ? prove::json_of(proofs) : text);
  }
  return prove::any_differs(proofs) ? ExitCode::differs : ExitCode::as_expected;
}

}  // namespace

ExitCode examine_machine(const CommandLine& line) {
  if (line.real.prove) {
    return prove_machine(line);
  }
  const std::vector<real::Diagnosis> diagnoses = real::examine();
  emit(line, line.format == Format::json ? json_of(diagnoses) : text_of(diagnoses));
  return ExitCode::as_expected;
}

}  // namespace rollcall::cli
