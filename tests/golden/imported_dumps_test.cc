// Imports every set of dumps in tests/data/flight_recorder as a scenario, which must run and blame the same ranks as
// the diagnosis.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/recordings/imported_job.h"
#include "scenarios/run/runner.h"
#include "sim/diagnose/dump_judge.h"
#include "sim/report/blame.h"
#include "tests/catch.h"
#include "traces/formats/recordings.h"

namespace rollcall::scenario::imported_dumps_test {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> sets() {
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/flight_recorder")) {
    folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

// If nothing in the run decides, it names all sides of the disagreement; the diagnosis has also seen the earlier steps.
void check_culprits(const Diagnosis& diagnosis, const Report& report) {
  const Finding* finding = finding_of(report.verdict);
  const bool goes_well =
      diagnosis.finding.culprits.empty() || diagnosis.finding.kind == FindingKind::straggler;
  REQUIRE((finding == nullptr) == goes_well);
  if (finding != nullptr && !is_undecided(report.verdict)) {
    CHECK(to_string(finding->culprits) == to_string(diagnosis.finding.culprits));
  } else if (finding != nullptr) {
    CHECK(finding->culprits.contains(diagnosis.finding.culprits));
  }
}

check::JobDump dumps_of(const fs::path& set, const std::string& encoding) {
  return traces::read_recordings({(set / encoding).string()}).job;
}

}  // namespace

TEST_CASE("imported dumps run as a scenario and come to what they were diagnosed as",
          "[flight-recorder][fiber]") {
  for (const fs::path& set : sets()) {
    for (const char* encoding : {"pickle", "json"}) {
      const check::JobDump job = dumps_of(set, encoding);
      const Diagnosis diagnosis = check::judge_dump(job);
      const ImportedJob imported = import_dumps(job, diagnosis);
      const Report report = run(parse_scenario(imported.text, "imported.json"));
      CAPTURE(set.filename().string(), encoding, diagnosis.finding.kind,
              to_string(diagnosis.finding.culprits), imported.remark);
      CHECK(report.expected == true);
      CHECK(imported.remark.empty());
      check_culprits(diagnosis, report);
    }
  }
}

TEST_CASE("an imported job gives the same bytes every time", "[flight-recorder][fiber]") {
  for (const char* name : {"crashed_no_dump_8", "pp_seq_divergence_8", "tp_dp_crossed_8"}) {
    const fs::path set = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/flight_recorder" / name;
    const check::JobDump job = dumps_of(set, "pickle");
    const Diagnosis diagnosis = check::judge_dump(job);
    CHECK(import_dumps(job, diagnosis).text == import_dumps(job, diagnosis).text);
  }
}

}  // namespace rollcall::scenario::imported_dumps_test
