// New real jobs, made by tests/real_jobs/jobs.py with the installed torch, or those in the folder that
// ROLLCALL_REAL_JOBS names. The diagnosis must be right if the dumps decide, silent on healthy jobs, and never wrong
// with high confidence.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/diagnose/dump_judge.h"
#include "tests/catch.h"
#include "tests/folder.h"
#include "traces/formats/recordings.h"

namespace rollcall::traces::real_jobs_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* has_recorder =
    "python3 -c 'import torch; torch._C._distributed_c10d._dump_fr_trace' >/dev/null 2>&1";
constexpr const char* few =
    "stuck_in_loader skipped_branch_periodic crossed_groups logs_on_one_rank_only healthy_fast "
    "healthy_first_checkpoint";

bool is_right(const nlohmann::json& truth, const Diagnosis& diagnosis) {
  auto verdicts = truth.value("accept", std::set<std::string>());
  verdicts.insert(truth.at("verdict"));
  auto culprits = truth.value("accept_culprits", std::vector<std::vector<Rank>>());
  culprits.push_back(truth.at("culprits"));
  return verdicts.contains(std::string(to_string(diagnosis.finding.kind))) &&
         std::ranges::any_of(culprits, [&](const std::vector<Rank>& ranks) {
           return RankSet::of(ranks) == diagnosis.finding.culprits;
         });
}

void judge_jobs_in(const fs::path& folder) {
  int judged = 0;
  for (const fs::directory_entry& set : fs::directory_iterator(folder)) {
    std::ifstream in(set.path() / "truth.json");
    if (!in || !fs::exists(set.path() / "pickle")) {
      continue;
    }
    const nlohmann::json truth = nlohmann::json::parse(in);
    const Diagnosis diagnosis = check::judge_dump(read_recordings({(set.path() / "pickle").string()}).job);
    CAPTURE(set.path().filename().string(), to_string(diagnosis.finding.kind),
            to_string(diagnosis.finding.culprits), diagnosis.finding.headline);
    const bool right = is_right(truth, diagnosis);
    CHECK((right || diagnosis.confidence != Diagnosis::Confidence::high));
    if (truth.at("verdict") == "no_fault") {
      CHECK_FALSE(is_alarm(diagnosis));
    } else {
      CHECK((right || !truth.at("decidable").get<bool>()));
    }
    ++judged;
  }
  CHECK(judged > 0);
}

}  // namespace

TEST_CASE("new real jobs are judged as their programs were made to fail", "[real-jobs]") {
  if (const char* folder = std::getenv("ROLLCALL_REAL_JOBS")) {
    judge_jobs_in(folder);
    return;
  }
  if (std::system(has_recorder) != 0) {
    WARN("skipped: no torch with a Flight Recorder for Gloo");
    return;
  }
  const test::Folder folder;
  const std::string script = ROLLCALL_SOURCE_DIR "/tests/real_jobs/jobs.py";
  REQUIRE(std::system(fmt::format("python3 '{}' '{}' {} >/dev/null", script, folder.path(), few).c_str()) ==
          0);
  judge_jobs_in(folder.path());
}

}  // namespace rollcall::traces::real_jobs_test
