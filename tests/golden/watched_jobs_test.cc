// Rings of real jobs that were watched while they hung (tests/data/watched), with torch 1.13, 2.6 and 2.14 on Gloo.
// tests/real_jobs/watch_jobs.py made them; the machine's paths were replaced.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/diagnose/dump_judge.h"
#include "tests/catch.h"
#include "traces/formats/recordings.h"

namespace rollcall::traces::watched_jobs_test {
namespace {

namespace fs = std::filesystem;

}  // namespace

TEST_CASE("rings of real jobs that hang are judged as their programs were made to fail", "[watch][golden]") {
  int judged = 0;
  for (const fs::directory_entry& set : fs::directory_iterator(ROLLCALL_SOURCE_DIR "/tests/data/watched")) {
    std::ifstream in(set.path() / "truth.json");
    const nlohmann::json truth = nlohmann::json::parse(in);
    auto verdicts = truth.at("accept").get<std::set<std::string>>();
    verdicts.insert(truth.at("verdict"));
    auto culprits = truth.at("accept_culprits").get<std::vector<std::vector<Rank>>>();
    culprits.push_back(truth.at("culprits"));
    const ReadResult read = read_recordings({set.path().string()});
    const Diagnosis diagnosis = check::judge_dump(read.job);
    CAPTURE(set.path().filename().string(), to_string(diagnosis.finding.kind), diagnosis.finding.headline);
    CHECK(read.job.ranks.size() == 4);
    CHECK(verdicts.contains(std::string(to_string(diagnosis.finding.kind))));
    CHECK(std::ranges::any_of(culprits, [&](const std::vector<Rank>& ranks) {
      return RankSet::of(ranks) == diagnosis.finding.culprits;
    }));
    ++judged;
  }
  CHECK(judged >= 12);
}

}  // namespace rollcall::traces::watched_jobs_test
