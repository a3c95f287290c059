// Every set of dumps in tests/data/flight_recorder must get the verdict and the culprits that its truth.json names, as
// pickle and as JSON, in whatever order the files come.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "sim/diagnose/dump_judge.h"
#include "tests/catch.h"
#include "traces/formats/recordings.h"

namespace rollcall::traces::flight_recorder_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::vector<fs::path> sets(const char* kind = "flight_recorder") {
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(fs::path(ROLLCALL_SOURCE_DIR) / "tests/data" / kind)) {
    folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

Json truth_of(const fs::path& set) {
  std::ifstream in(set / "truth.json");
  return Json::parse(in);
}

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Diagnosis diagnose(const std::vector<std::string>& files) {
  const ReadResult input = read_recordings(files);
  CHECK(input.problems.empty());
  return check::judge_dump(input.job);
}

// Two causes can leave the same bytes: nothing recorded distinguishes a rank that is stuck in its data loader from one
// that has left the loop. Then the diagnosis has to name both.
bool is_right(const Json& truth, const Diagnosis& diagnosis) {
  std::set<std::string> verdicts = truth.value("accept", std::set<std::string>());
  verdicts.insert(truth.at("verdict"));
  const bool shares_its_looks =
      truth.at("verdict") == "early_exit" && diagnosis.finding.kind == FindingKind::stuck_host;
  return verdicts.contains(std::string(to_string(diagnosis.finding.kind))) ||
         (shares_its_looks && std::ranges::count(diagnosis.alternatives, FindingKind::early_exit) > 0);
}

bool names_culprits(const Json& truth, const Diagnosis& diagnosis) {
  std::vector<std::vector<Rank>> accepted = truth.value("accept_culprits", std::vector<std::vector<Rank>>());
  accepted.push_back(truth.at("culprits"));
  return std::any_of(accepted.begin(), accepted.end(), [&](const std::vector<Rank>& culprits) {
    return RankSet::of(culprits) == diagnosis.finding.culprits;
  });
}

// The same as text, so that a difference is printed.
std::string summary(const Diagnosis& diagnosis) {
  return fmt::format("{} {}: {}", to_string(diagnosis.finding.kind), to_string(diagnosis.finding.culprits),
                     diagnosis.finding.headline);
}

}  // namespace

TEST_CASE("every decidable set of dumps gets its verdict and its culprits", "[flight-recorder]") {
  for (const fs::path& set : sets()) {
    const Json truth = truth_of(set);
    for (const char* encoding : {"pickle", "json"}) {
      const Diagnosis diagnosis = diagnose(files_in(set / encoding));
      CAPTURE(set.filename().string(), encoding, summary(diagnosis));
      CHECK(is_right(truth, diagnosis));
      if (truth.at("decidable")) {
        CHECK(names_culprits(truth, diagnosis));
      }
    }
  }
}

// Sets on which the judge was once wrong, or more certain than the dumps allow. JSON has no stacks.
TEST_CASE("made up dumps get their verdicts and culprits, too", "[flight-recorder]") {
  for (const fs::path& set : sets("made_up_dumps")) {
    const Json truth = truth_of(set);
    const auto without_stacks = truth.value("accept_without_stacks", std::set<std::string>());
    for (const char* encoding : {"pickle", "json"}) {
      const Diagnosis diagnosis = diagnose(files_in(set / encoding));
      CAPTURE(set.filename().string(), encoding, summary(diagnosis));
      CHECK((is_right(truth, diagnosis) ||
             (encoding == std::string("json") &&
              without_stacks.contains(std::string(to_string(diagnosis.finding.kind))))));
      CHECK(names_culprits(truth, diagnosis));
    }
  }
}

TEST_CASE("a majority that lost dumps could turn is not held for certain", "[flight-recorder]") {
  const fs::path data = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data";
  const std::vector<std::string> all = files_in(data / "flight_recorder/size_mismatch_4/pickle");
  REQUIRE(all.size() == 4);
  CHECK(diagnose(all).confidence == Diagnosis::Confidence::high);
  const std::vector<std::string> rest(all.begin(), all.end() - 1);  // the last is the culprit's own
  CHECK(diagnose(rest).confidence != Diagnosis::Confidence::high);
  const std::vector<std::string> two_to_one(all.begin() + 1, all.end());
  CHECK(diagnose(two_to_one).confidence != Diagnosis::Confidence::high);
}

TEST_CASE("where the dumps cannot decide, nobody is blamed and the open question is named",
          "[flight-recorder]") {
  std::size_t count = 0;
  for (const fs::path& set : sets()) {
    if (truth_of(set).at("decidable")) {
      continue;
    }
    const Diagnosis diagnosis = diagnose(files_in(set / "pickle"));
    CAPTURE(set.filename().string(), summary(diagnosis));
    CHECK(diagnosis.finding.culprits.empty());
    CHECK(diagnosis.confidence == Diagnosis::Confidence::low);
    CHECK_FALSE(diagnosis.would_settle.empty());
    ++count;
  }
  CHECK(count > 0);
}

TEST_CASE("a fault is placed in the group and the call that the truth names", "[flight-recorder]") {
  for (const fs::path& set : sets()) {
    const Json truth = truth_of(set);
    if (truth.at("collective_seq_id").is_null() || truth.value("p2p", false)) {
      continue;
    }
    const Diagnosis diagnosis = diagnose(files_in(set / "pickle"));
    CAPTURE(set.filename().string(), summary(diagnosis));
    REQUIRE(diagnosis.finding.at);
    CHECK(diagnosis.group_name == truth.at("group").at("name").get<std::string>());
    CHECK(diagnosis.finding.at->call.seq == truth.at("collective_seq_id"));
  }
}

TEST_CASE("with stacks, calls left out and calls too many are told from plain mismatches",
          "[flight-recorder]") {
  for (const fs::path& set : sets()) {
    const Json truth = truth_of(set);
    const std::string verdict = truth.at("verdict");
    if (verdict == "skipped_collective" || verdict == "extra_collective" ||
        verdict == "desync_after_exception" || verdict == "join_shadow_mismatch") {
      const Diagnosis diagnosis = diagnose(files_in(set / "pickle"));
      CAPTURE(set.filename().string(), summary(diagnosis));
      CHECK(to_string(diagnosis.finding.kind) == verdict);
    }
  }
}

// Shows why both are named: only the jitter could distinguish them.
TEST_CASE("an early exit and a stuck data loader leave the same records, but for the times",
          "[flight-recorder]") {
  const fs::path data = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/flight_recorder";
  std::vector<check::JobDump> jobs;
  for (const char* set : {"early_exit_uneven_inputs_4", "cpu_stuck_dataloader_4"}) {
    check::JobDump job = read_recordings(files_in(data / set / "pickle")).job;
    for (check::RankDump& dump : job.ranks) {
      for (check::DumpRecord& record : dump.records) {
        record.created_ns = record.created_ns != 0 ? 1 : 0;
        record.completed_ns = record.completed_ns != 0 ? 1 : 0;
      }
    }
    jobs.push_back(std::move(job));
  }
  CHECK(jobs[0].calls == jobs[1].calls);
  CHECK(jobs[0].stacks == jobs[1].stacks);
  CHECK(jobs[0].groups == jobs[1].groups);
  REQUIRE(jobs[0].ranks.size() == jobs[1].ranks.size());
  for (std::size_t i = 0; i < jobs[0].ranks.size(); ++i) {
    CHECK(jobs[0].ranks[i].records == jobs[1].ranks[i].records);
  }
}

TEST_CASE("the order of the files decides nothing", "[flight-recorder]") {
  for (const fs::path& set : sets()) {
    for (const char* encoding : {"pickle", "json"}) {
      std::vector<std::string> files = files_in(set / encoding);
      const std::string expected = summary(diagnose(files));
      std::reverse(files.begin(), files.end());
      CHECK(summary(diagnose(files)) == expected);
      std::rotate(files.begin(), files.begin() + 1, files.end());
      CHECK(summary(diagnose(files)) == expected);
    }
  }
}

TEST_CASE("whatever ranks are called, the same one is to blame", "[flight-recorder]") {
  for (const fs::path& set : sets()) {
    check::JobDump job = read_recordings(files_in(set / "pickle")).job;
    const Diagnosis before = check::judge_dump(job);
    const auto renamed = [](Rank rank) { return 3 * rank + 5; };
    for (check::RankDump& dump : job.ranks) {
      dump.rank = renamed(dump.rank);
    }
    for (check::DumpGroup& group : job.groups) {
      std::transform(group.members.begin(), group.members.end(), group.members.begin(), renamed);
    }
    const Diagnosis after = check::judge_dump(job);
    CAPTURE(set.filename().string(), summary(before), summary(after));
    CHECK(after.finding.kind == before.finding.kind);
    std::vector<Rank> expected = before.finding.culprits.to_vector();
    std::transform(expected.begin(), expected.end(), expected.begin(), renamed);
    CHECK(after.finding.culprits == RankSet::of(expected));
  }
}

// Loses the dump of each rank that is not a culprit, one at a time. Messages and cycles need both of their ends.
TEST_CASE("the lost dump of a victim does not make it a culprit", "[flight-recorder]") {
  for (const fs::path& set : sets()) {
    const Json truth = truth_of(set);
    const std::set<std::string> needs_all = {"crashed_rank", "p2p_mismatch", "cross_group_deadlock"};
    if (!truth.at("decidable") || !truth.at("hang") || truth.at("culprits").empty() ||
        needs_all.contains(truth.at("verdict"))) {
      continue;
    }
    const std::vector<std::string> files = files_in(set / "pickle");
    for (std::size_t i = 0; i < files.size(); ++i) {
      std::vector<std::string> rest = files;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      const Diagnosis whole = diagnose(files);
      const auto lost = static_cast<Rank>(i);  // with up to ten ranks, file names sort like ranks
      if (whole.finding.culprits.contains(lost)) {
        continue;
      }
      const Diagnosis diagnosis = diagnose(rest);
      CAPTURE(set.filename().string(), lost, summary(diagnosis));
      CHECK_FALSE(diagnosis.finding.culprits == RankSet{lost});
      CHECK(diagnosis.without_dump == RankSet{lost});
    }
  }
}

}  // namespace rollcall::traces::flight_recorder_test
