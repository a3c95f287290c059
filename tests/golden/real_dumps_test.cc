// The recordings of real jobs in tests/data/fr_real and fr_megatron must get the verdict and the ranks that their
// truth.json names. tests/real_jobs makes more of them.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/diagnose/dump_judge.h"
#include "tests/catch.h"
#include "tests/unit/traces/folder.h"
#include "traces/dumps/dump_report.h"
#include "traces/formats/recordings.h"

namespace rollcall::traces::real_dumps_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Verdicts = std::set<std::string>;
using Culprits = std::vector<std::vector<Rank>>;

std::vector<fs::path> real_sets(const char* kind = "fr_real") {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(fs::path(ROLLCALL_SOURCE_DIR) / "tests/data" / kind)) {
    if (entry.is_directory()) {
      folders.push_back(entry.path());
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

Json truth_in(const fs::path& set) {
  std::ifstream in(set / "truth.json");
  return Json::parse(in);
}

std::string verdict_of(const Diagnosis& diagnosis) { return std::string(to_string(diagnosis.finding.kind)); }

std::string said(const Diagnosis& diagnosis) {
  return fmt::format("{} {} ({}): {}", verdict_of(diagnosis), to_string(diagnosis.finding.culprits),
                     to_string(diagnosis.confidence), diagnosis.finding.headline);
}

Diagnosis diagnose_folders(const std::vector<fs::path>& folders) {
  std::vector<std::string> paths;
  for (const fs::path& folder : folders) {
    if (fs::exists(folder)) {
      paths.push_back(folder.string());
    }
  }
  return check::judge_dump(read_recordings(paths).job);
}

bool is_one_of(const Diagnosis& diagnosis, const Verdicts& verdicts, const Culprits& culprits) {
  return verdicts.contains(verdict_of(diagnosis)) &&
         std::ranges::any_of(culprits, [&](const std::vector<Rank>& ranks) {
           return RankSet::of(ranks) == diagnosis.finding.culprits;
         });
}

bool fits(const Json& truth, const Diagnosis& diagnosis) {
  auto verdicts = truth.value("accept", Verdicts());
  verdicts.insert(truth.at("verdict"));
  auto culprits = truth.value("accept_culprits", Culprits());
  culprits.push_back(truth.at("culprits"));
  return is_one_of(diagnosis, verdicts, culprits);
}

}  // namespace

TEST_CASE("the dumps of real jobs get the verdict and the ranks that are to blame",
          "[flight-recorder][real-dumps]") {
  std::vector<fs::path> sets = real_sets();
  for (const fs::path& set : real_sets("fr_jobs")) {
    sets.push_back(set);
  }
  for (const fs::path& set : sets) {
    const Json truth = truth_in(set);
    for (const char* encoding : {"pickle", "json"}) {
      if (!fs::exists(set / encoding)) {
        continue;
      }
      const Diagnosis diagnosis =
          diagnose_folders({set / encoding, set / (std::string(encoding) + "_later")});
      CAPTURE(set.filename().string(), encoding, said(diagnosis));
      if (truth.at("decidable")) {
        CHECK(fits(truth, diagnosis));
      } else {  // the dumps do not say it: whatever is said has to be said with doubt, and how to settle it
        CHECK(diagnosis.confidence != Diagnosis::Confidence::high);
        CHECK_FALSE(diagnosis.would_settle.empty());
      }
    }
  }
}

TEST_CASE("real jobs on NCCL get the verdict and the ranks that are to blame, whatever is left of them",
          "[flight-recorder][real-dumps]") {
  std::vector<fs::path> sets = real_sets("nccl_jobs");
  CHECK(sets.size() == 48);
  for (const fs::path& set : real_sets("nccl_libraries")) {
    sets.push_back(set);
  }
  CHECK(sets.size() == 48 + 17);
  for (const fs::path& set : sets) {
    const Json truth = truth_in(set);
    const bool is_healthy = truth.at("verdict") == "no_fault" || truth.at("verdict") == "straggler";
    const std::vector<std::vector<fs::path>> evidence = {{set / "pickle"},
                                                         {set / "pickle", set / "pickle_later"},
                                                         {set / "pickle", set / "log"},
                                                         {set / "json"},
                                                         {set / "watchdog", set / "log"},
                                                         {set / "pickle", set / "log", set / "stack"},
                                                         {set / "log"},
                                                         {set / "log", set / "stack"},
                                                         {set / "stack"},
                                                         {set / "stack", set / "stack_later"},
                                                         {set / "ras"}};
    for (const std::vector<fs::path>& folders : evidence) {
      if (!fs::exists(folders.front())) {
        continue;
      }
      const Diagnosis diagnosis = diagnose_folders(folders);
      const bool is_recorded = folders.front().filename() == "pickle";
      CAPTURE(set.filename().string(), folders.front().filename().string(), folders.size(), said(diagnosis));
      if (is_healthy) {
        CHECK_FALSE(is_alarm(diagnosis));
      }
      if (diagnosis.confidence != Diagnosis::Confidence::low) {
        CHECK((fits(truth, diagnosis) ||
               (!is_recorded && diagnosis.finding.culprits == RankSet::of(truth.at("culprits")))));
      }
      if (is_recorded && !is_healthy && truth.at("decidable")) {
        CHECK(fits(truth, diagnosis));
      }
    }
  }
}

TEST_CASE("where calls return before they are over, the stacks of the ranks part at the culprit's",
          "[job-log][real-dumps]") {
  for (const fs::path& set : real_sets("nccl_libraries")) {
    const Json truth = truth_in(set);
    const Diagnosis once = diagnose_folders({set / "stack"});
    const Diagnosis twice = diagnose_folders({set / "stack", set / "stack_later"});
    CAPTURE(set.filename().string(), said(once), said(twice));
    for (const Diagnosis& diagnosis : {once, twice}) {
      CHECK(diagnosis.confidence == Diagnosis::Confidence::low);
      CHECK(diagnosis.finding.culprits ==
            (truth.at("stacks_part") ? RankSet::of(truth.at("culprits")) : RankSet()));
    }
    CHECK(once.may_be_healthy);
    CHECK(twice.may_be_healthy == twice.finding.culprits.empty());
  }
}

TEST_CASE("NCCL's word about sizes accuses no rank, and torch's about groups at exit the rank that left",
          "[job-log][real-dumps]") {
  const fs::path sets = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/nccl_libraries";
  const Diagnosis truncated = diagnose_folders({sets / "ddp.eval/log"});
  CHECK(truncated.finding.kind == FindingKind::size_mismatch);
  CHECK(truncated.finding.culprits.empty());
  CHECK(truncated.finding.cause == "a message of 789184 bytes came, and 65536 were expected");
  const Diagnosis left = diagnose_folders({sets / "ddp.stops/pickle", sets / "ddp.stops/log"});
  CHECK(left.finding.kind == FindingKind::early_exit);
  CHECK(left.finding.culprits == RankSet{1});
}

TEST_CASE("NCCL counts ranks within communicators, and its RAS says in JSON which ranks of the job they are",
          "[job-log][real-dumps]") {
  const fs::path ras = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/nccl_jobs/wrong_group/ras";
  CHECK(diagnose_folders({ras / "status.json"}).finding.culprits == RankSet{3});
  const Diagnosis by_text = diagnose_folders({ras / "status.txt"});
  CHECK(by_text.finding.culprits.empty());
  CHECK_THAT(by_text.finding.headline, Contains("does not say which ranks of the job they are"));
  CHECK_THAT(by_text.evidence.front(), Contains("communicator #1-0: Rank 0 has launched up to operation 6"));
}

TEST_CASE("RAS of a job that has lost a rank is read, though its JSON lacks a comma",
          "[job-log][real-dumps]") {
  const fs::path ras = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/nccl_jobs/sigkill/ras";
  for (const char* file : {"status.txt", "status.json"}) {
    const Diagnosis diagnosis = diagnose_folders({ras / file});
    CAPTURE(file, said(diagnosis));
    CHECK(diagnosis.finding.kind == FindingKind::crashed_rank);
    CHECK(diagnosis.finding.culprits == RankSet{2, 3});  // one of them is gone, and hides the other
    CHECK(diagnosis.confidence == Diagnosis::Confidence::low);
  }
}

TEST_CASE("a call that NCCL ended because a rank is gone has not timed out", "[job-log][real-dumps]") {
  const fs::path set = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/nccl_jobs/sigkill";
  const Diagnosis diagnosis = diagnose_folders({set / "log"});
  CHECK(diagnosis.finding.kind == FindingKind::crashed_rank);
  CHECK(diagnosis.finding.culprits == RankSet{3});
}

TEST_CASE("a log of the watchdog says from which line the call was made that timed out",
          "[job-log][real-dumps]") {
  const fs::path set = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/nccl_jobs/stuck_in_loader";
  const Diagnosis diagnosis = diagnose_folders({set / "log"});
  REQUIRE(diagnosis.finding.at);
  CHECK_THAT(diagnosis.finding.at->call.site, Contains("tests/real_jobs/jobs.py:"));
}

TEST_CASE("a batch of messages is one call, though its marker does not say that it is of messages",
          "[flight-recorder][real-dumps]") {
  const fs::path set = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/nccl_jobs/stuck_in_ring";
  const Diagnosis diagnosis = diagnose_folders({set / "pickle", set / "pickle_later"});
  CHECK(diagnosis.finding.kind == FindingKind::stuck_host);
  CHECK(diagnosis.finding.culprits == RankSet{2});
  CHECK(diagnosis.confidence == Diagnosis::Confidence::medium);
  REQUIRE(diagnosis.finding.at);
  CHECK(diagnosis.finding.at->call.op == "batch_isend_irecv");
  CHECK_THAT(diagnosis.finding.at->call.site, Contains("tests/real_jobs/jobs.py:"));
}

TEST_CASE("hosts may be further ahead of their GPUs than their rings reach",
          "[flight-recorder][real-dumps]") {
  const fs::path set = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/nccl_jobs/healthy_groups";
  for (const std::vector<fs::path>& moments :
       {std::vector{set / "pickle"}, std::vector{set / "pickle", set / "pickle_later"}}) {
    const Diagnosis diagnosis = diagnose_folders(moments);
    CAPTURE(said(diagnosis));
    CHECK(diagnosis.finding.kind == FindingKind::no_fault);
  }
}

TEST_CASE("dumps that hold no call show nothing, and do not say that all is well",
          "[flight-recorder][real-dumps]") {
  const fs::path set = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/fr_jobs/misdirected_isend_4";
  const Diagnosis diagnosis = diagnose_folders({set / "pickle"});
  CHECK(diagnosis.may_be_healthy);
  CHECK_THAT(diagnosis.finding.headline, Contains("they show nothing"));
}

TEST_CASE("real jobs with nothing wrong raise no alarm, at whatever moment they are dumped",
          "[flight-recorder][real-dumps]") {
  const std::vector<fs::path> sets = real_sets("fr_healthy");
  CHECK(sets.size() == 13);
  for (const fs::path& set : sets) {
    const Diagnosis diagnosis = diagnose_folders({set / "pickle"});
    CAPTURE(set.filename().string(), said(diagnosis));
    CHECK_FALSE(is_alarm(diagnosis));
    if (diagnosis.finding.kind != FindingKind::no_fault) {
      CHECK(diagnosis.confidence == Diagnosis::Confidence::low);
      CHECK_FALSE(diagnosis.would_settle.empty());
    }
  }
}

TEST_CASE("an error in the log of a job that makes calls may have been handled", "[job-log][real-dumps]") {
  const fs::path set = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/fr_healthy/logs_a_handled_error";
  const Diagnosis diagnosis = diagnose_folders({set / "pickle", set / "pickle_later", set / "log"});
  CAPTURE(said(diagnosis));
  CHECK_FALSE(is_alarm(diagnosis));
  CHECK(diagnosis.may_be_healthy);
  const Diagnosis alone = diagnose_folders({set / "log"});
  CHECK(alone.finding.culprits == RankSet{2});
}

TEST_CASE("ranks whose stacks are in calls that are not recorded are not well", "[job-log][real-dumps]") {
  const fs::path set = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/fr_failed/swaps_groups_under_detail";
  const Diagnosis diagnosis = diagnose_folders({set / "pickle", set / "stack"});
  CAPTURE(said(diagnosis));
  CHECK_FALSE(is_alarm(diagnosis));
  CHECK(diagnosis.may_be_healthy);
  CHECK_FALSE(diagnose_folders({set / "pickle"}).may_be_healthy);
}

TEST_CASE("the text dumps of torch.distributed.debug are read, and what nobody reads is named",
          "[job-log][real-dumps]") {
  const ReadResult read =
      read_recordings({(fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/torch_debug").string()});
  const Diagnosis diagnosis = check::judge_dump(read.job);
  CAPTURE(said(diagnosis));
  CHECK(diagnosis.finding.kind == FindingKind::stuck_host);
  CHECK(diagnosis.finding.culprits == RankSet{2});
  CHECK_FALSE(is_alarm(diagnosis));  // only one dump
  CHECK(read.problems.empty());
  CHECK(read.unknown.size() == 4);  // pyspy_dump without py-spy, tcpstore, wait_counters, README.md
}

TEST_CASE("in Megatron jobs a device that stopped is told from a host that did",
          "[flight-recorder][real-dumps]") {
  for (const fs::path& set : real_sets("fr_megatron")) {
    const Diagnosis diagnosis = diagnose_folders({set / "pickle"});
    CAPTURE(set.filename().string(), said(diagnosis));
    CHECK(fits(truth_in(set), diagnosis));
  }
}

TEST_CASE("logs and stacks beside the dumps decide what these leave open", "[flight-recorder][real-dumps]") {
  for (const fs::path& set : real_sets()) {
    const Json truth = truth_in(set);
    const Diagnosis diagnosis = diagnose_folders({set / "pickle", set / "log", set / "stack"});
    CAPTURE(set.filename().string(), said(diagnosis));
    if (truth.contains("with_log")) {
      CHECK(is_one_of(diagnosis, truth.at("with_log").at(0), {truth.at("with_log").at(1)}));
    } else {  // also if only stacks show it
      CHECK(fits(truth, diagnosis));
    }
  }
}

TEST_CASE("the calls that DETAIL logs count where the dumps look quiet", "[job-log][real-dumps]") {
  for (const fs::path& set : real_sets("fr_detail")) {
    const Json truth = truth_in(set);
    for (const std::vector<std::string>& files : {std::vector<std::string>{(set / "log").string()},
                                                  {(set / "pickle").string(), (set / "log").string()}}) {
      const Diagnosis diagnosis = diagnose_folders({files.begin(), files.end()});
      CAPTURE(set.filename().string(), files.size(), said(diagnosis));
      CHECK(fits(truth, diagnosis));
      CHECK(diagnosis.confidence == Diagnosis::Confidence::low);
      CHECK_FALSE(diagnosis.would_settle.empty());
    }
  }
}

TEST_CASE("who waits for others until the timeout is not blamed for those who wait for it",
          "[job-log][real-dumps]") {
  const std::vector<fs::path> sets = real_sets("fr_logs");
  CHECK(sets.size() == 3);
  for (const fs::path& set : sets) {
    const Diagnosis diagnosis = diagnose_folders({set / "json", set / "log"});
    CAPTURE(set.filename().string(), said(diagnosis));
    CHECK(is_alarm(diagnosis));
    CHECK((fits(truth_in(set), diagnosis) || diagnosis.confidence == Diagnosis::Confidence::low));
    CHECK_FALSE(diagnosis.would_settle.empty());
  }
  const Diagnosis ring = diagnose_folders({sets.back() / "log"});
  CHECK(ring.finding.culprits == RankSet{2});  // of the missing ranks, 1 and 3 waited for messages
}

TEST_CASE("the rank that torchrun saw fail first is not to blame if it waited, or if others sent it too much",
          "[job-log][real-dumps]") {
  const std::vector<fs::path> sets = real_sets("torchrun_logs");
  CHECK(sets.size() == 7);
  for (const fs::path& set : sets) {
    const Json truth = truth_in(set);
    const Diagnosis diagnosis = diagnose_folders({set / "console.log"});
    CAPTURE(set.filename().string(), said(diagnosis));
    if (truth.at("culprits") == Json{3}) {  // the log has evidence of its absence
      CHECK(fits(truth, diagnosis));
    } else {
      CHECK(diagnosis.finding.culprits.empty());
      CHECK(diagnosis.confidence == Diagnosis::Confidence::low);
    }
  }
}

TEST_CASE("dumps that describe a group differently are judged all the same",
          "[flight-recorder][real-dumps]") {
  const fs::path data = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/fr_partial";
  const Diagnosis diagnosis = diagnose_folders({data / "subgroup_without_rank_1"});
  CAPTURE(said(diagnosis));
  CHECK(diagnosis.finding.culprits == RankSet{2});
}

TEST_CASE("calls that are over on all ranks and differ are a contradiction",
          "[flight-recorder][real-dumps]") {
  const fs::path data = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/fr_failed";
  for (const char* name : {"retries_without_first_half", "barrier_for_all_reduce"}) {
    const Diagnosis diagnosis = diagnose_folders({data / name / "pickle"});
    CAPTURE(name, said(diagnosis));
    CHECK(fits(truth_in(data / name), diagnosis));
    CHECK(diagnosis.confidence == Diagnosis::Confidence::high);
  }
}

TEST_CASE("one iteration too many of a loop is told from five calls left out",
          "[flight-recorder][job-log][real-dumps]") {
  const fs::path set = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/fr_failed/evaluates_one_batch_more";
  for (const std::vector<fs::path>& folders : {std::vector{set / "pickle"}, {set / "pickle_later"}, {set}}) {
    const Diagnosis diagnosis = diagnose_folders(folders);
    CAPTURE(said(diagnosis));
    CHECK(fits(truth_in(set), diagnosis));
    CHECK(diagnosis.alternatives == std::vector{FindingKind::skipped_collective});
    CHECK(diagnosis.confidence == Diagnosis::Confidence::medium);
  }
}

TEST_CASE("a part of a job that stands still is not taken for health because another part moved",
          "[flight-recorder][real-dumps]") {
  const fs::path set = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/fr_failed/stands_still_in_one_half";
  const Diagnosis diagnosis = diagnose_folders({set / "pickle", set / "pickle_later"});
  CAPTURE(said(diagnosis));
  CHECK(fits(truth_in(set), diagnosis));
  CHECK(diagnosis.may_be_healthy);
}

TEST_CASE("a rank that stopped before a call is said to lack that call, and not the next one's kind",
          "[flight-recorder][real-dumps]") {
  const fs::path set = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/fr_failed/stops_before_a_broadcast";
  const Diagnosis diagnosis = diagnose_folders({set / "pickle", set / "pickle_later"});
  CHECK(fits(truth_in(set), diagnosis));
  CHECK(diagnosis.finding.headline == "rank 7 never issued broadcast #14 on default_pg");
}

TEST_CASE("stacks and logs tell who is late from who is early, who is killed and who gave up",
          "[flight-recorder][job-log][real-dumps]") {
  const fs::path data = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/fr_failed";
  for (const char* name :
       {"three_read_while_one_waits", "retries_after_timeouts", "killed_while_others_wait"}) {
    std::vector<fs::path> folders;
    for (const char* kind : {"json", "json_later", "pickle", "log", "stack", "stack_later"}) {
      if (fs::exists(data / name / kind)) {
        folders.push_back(data / name / kind);
      }
    }
    const Diagnosis diagnosis = diagnose_folders(folders);
    CAPTURE(name, said(diagnosis));
    CHECK(fits(truth_in(data / name), diagnosis));
    CHECK((is_alarm(diagnosis) || diagnosis.may_be_healthy));
  }
}

TEST_CASE("what recordings cannot show is not taken for health, and no rank is surely blamed for it",
          "[flight-recorder][job-log][real-dumps]") {
  const fs::path data = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/fr_failed";
  for (const char* name :
       {"broadcasts_from_another_root", "receives_what_no_rank_sends", "barrier_on_one_rank",
        "misses_barrier_of_a_pair", "sleeps_before_monitored_barrier"}) {
    std::vector<std::string> folders;
    for (const char* kind : {"pickle", "pickle_later", "stack", "log"}) {
      if (fs::exists(data / name / kind)) {
        folders.push_back((data / name / kind).string());
      }
    }
    ReadResult read = read_recordings(folders);
    read.job.is_known_to_hang = true;
    const Diagnosis diagnosis = check::judge_dump(read.job);
    CAPTURE(name, said(diagnosis));
    CHECK((diagnosis.finding.kind != FindingKind::no_fault || diagnosis.may_be_healthy));
    CHECK((diagnosis.confidence == Diagnosis::Confidence::low || fits(truth_in(data / name), diagnosis)));
  }
}

TEST_CASE("where nothing lists the members of a group, ranks with a dump are not taken for all ranks",
          "[flight-recorder][real-dumps]") {
  const fs::path set = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/fr_failed/leaves_one_rank_alone";
  ReadResult read = read_recordings({(set / "pickle").string()});
  read.job.is_known_to_hang = true;
  const Diagnosis diagnosis = check::judge_dump(read.job);
  CHECK(diagnosis.finding.headline == "rank 0 issued all_reduce #4 on default_pg, and does not finish it");
  CHECK(diagnosis.finding.culprits.empty());
  CHECK(diagnosis.confidence == Diagnosis::Confidence::low);
}

TEST_CASE("DETAIL's numbers of a small group are not taken for ranks of the job", "[job-log][real-dumps]") {
  const fs::path set = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/fr_failed/uses_the_other_group";
  const Diagnosis diagnosis = diagnose_folders({set / "log"});
  CAPTURE(said(diagnosis));
  CHECK(fits(truth_in(set), diagnosis));
  CHECK(diagnosis.confidence == Diagnosis::Confidence::medium);  // its own order of calls decides between two
}

TEST_CASE("logs and stacks that show nothing but waiting are not healthy", "[job-log][real-dumps]") {
  const fs::path data = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data";
  const test::Folder folder;
  fs::copy(data / "fr_real/stuck_dataloader/stack/rank_0.txt", fs::path(folder.path()) / "rank_0.txt");
  for (const fs::path& waits : {fs::path(folder.path()), data / "fr_real/crossed_groups/log_timeout"}) {
    const Diagnosis diagnosis = diagnose_folders({waits});
    CAPTURE(waits.string(), said(diagnosis));
    CHECK(diagnosis.finding.kind == FindingKind::no_fault);
    CHECK(diagnosis.may_be_healthy);
    CHECK_FALSE(is_alarm(diagnosis));
    CHECK_FALSE(diagnosis.would_settle.empty());
  }
  const Diagnosis one_look = diagnose_folders({data / "fr_real/partial_new_group/stack"});
  CHECK(one_look.finding.culprits == RankSet{3});
  CHECK_FALSE(is_alarm(one_look));  // the others may only be slower
}

TEST_CASE("logs alone name the ranks, or say that nothing in them does", "[job-log][real-dumps]") {
  std::size_t right = 0;
  std::size_t read = 0;
  for (const fs::path& set : real_sets()) {
    for (const char* kind : {"log_detail", "log_timeout"}) {
      if (!fs::exists(set / kind)) {
        continue;
      }
      const Json truth = truth_in(set);
      const Diagnosis diagnosis = diagnose_folders({set / kind});
      CAPTURE(set.filename().string(), kind, said(diagnosis));
      ++read;
      if (diagnosis.finding.culprits.empty()) {
        CHECK(diagnosis.confidence == Diagnosis::Confidence::low);
        CHECK_FALSE(diagnosis.would_settle.empty());
        continue;
      }
      auto culprits = truth.value("accept_culprits", Culprits());
      culprits.push_back(truth.at("culprits"));
      CHECK(std::ranges::any_of(culprits, [&](const std::vector<Rank>& ranks) {
        return RankSet::of(ranks) == diagnosis.finding.culprits;
      }));
      ++right;
    }
  }
  CHECK(read == 22);
  CHECK(right >= 19);
}

TEST_CASE("a page of Gloo's dumps shows what is over as over", "[flight-recorder][real-dumps]") {
  const fs::path set = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/fr_real/stuck_dataloader/pickle";
  const check::JobDump job = read_recordings({set.string()}).job;
  const Timeline timeline = report_of(job, check::judge_dump(job), "dumps").report.timeline;
  std::size_t open = 0;
  for (const Span& span : timeline.spans()) {
    open += span.end == Span::open ? 1 : 0;
  }
  CHECK(timeline.spans().size() == 3 * 13 + 12 + 1);
  CHECK(open == 3 + 1);  // the waiting ranks, and the call they wait for
}

TEST_CASE("two equal dumps of a rank are of a hang, or of a pause, unless the job is known to hang",
          "[flight-recorder][real-dumps]") {
  const fs::path set = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/fr_real/stuck_dataloader";
  const Diagnosis once = diagnose_folders({set / "pickle"});
  CHECK(once.confidence == Diagnosis::Confidence::low);
  CHECK_FALSE(is_alarm(once));
  CHECK(once.finding.culprits == RankSet{2});
  CHECK_THAT(once.would_settle.back(), Contains("second dump"));

  const test::Folder folder;
  for (const char* moment : {"at_noon", "later"}) {
    fs::copy(set / "pickle", fs::path(folder.path()) / moment);
  }
  const fs::path both = folder.path();
  const Diagnosis twice = diagnose_folders({both / "at_noon", both / "later"});
  CAPTURE(said(twice));
  CHECK(is_alarm(twice));
  CHECK(twice.finding.kind == FindingKind::stuck_host);
  CHECK(twice.finding.culprits == RankSet{2});
  CHECK(twice.confidence ==
        Diagnosis::Confidence::medium);  // Gloo's recorder does not show where the rank is
  CHECK_THAT(twice.evidence.back(), Contains("nothing moved between them"));
  ReadResult seen =
      read_recordings({(both / "at_noon").string(), (both / "later").string(), (set / "stack").string()});
  const Diagnosis perhaps = check::judge_dump(seen.job);
  CAPTURE(said(perhaps));
  CHECK(perhaps.confidence == Diagnosis::Confidence::medium);
  CHECK_THAT(perhaps.would_settle.back(), Contains("the time between the two dumps"));
  seen.job.is_known_to_hang = true;
  CHECK(check::judge_dump(seen.job).confidence == Diagnosis::Confidence::high);
}

TEST_CASE("a folder that holds every dump twice is of one moment", "[flight-recorder][real-dumps]") {
  const fs::path set = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/fr_real/stuck_dataloader";
  const test::Folder folder;
  for (const char* name : {"dumps", "dumps_saved"}) {
    fs::copy(set / "pickle", fs::path(folder.path()) / name);
  }
  const ReadResult read = read_recordings({folder.path()});
  CHECK(read.job.earlier.empty());
  REQUIRE(read.problems.size() == 4);
  CHECK_THAT(read.problems.front().message, Contains("byte for byte the same"));
  CHECK_FALSE(is_alarm(check::judge_dump(read.job)));
}

TEST_CASE("a job that makes calls between two dumps does not hang, whatever one of them looks like",
          "[flight-recorder][real-dumps]") {
  const fs::path data = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/fr_real";
  check::JobDump job = read_recordings({(data / "stuck_dataloader/pickle").string()}).job;
  for (const check::RankDump& dump : job.ranks) {
    if (dump.rank != 2) {  // it has not made the last call of the others
      job.earlier.push_back(dump);
      job.earlier.back().records.pop_back();
    }
  }
  const Diagnosis diagnosis = check::judge_dump(job);
  CAPTURE(said(diagnosis));
  CHECK(diagnosis.finding.kind == FindingKind::no_fault);
}

// The dumps, logs and moments of one job, as its user has them: of some ranks, or from before and after a timeout.
TEST_CASE("dumps together with other evidence get the verdict and the ranks that are to blame",
          "[flight-recorder][real-dumps]") {
  for (const fs::path& set : real_sets("fr_evidence")) {
    const Json truth = truth_in(set);
    const bool has_moments = fs::exists(set / "first");
    const Diagnosis diagnosis =
        diagnose_folders(has_moments ? std::vector{set / "first", set / "second"} : std::vector{set});
    CAPTURE(set.filename().string(), said(diagnosis));
    CHECK(fits(truth, diagnosis));
    CHECK((diagnosis.finding.kind != FindingKind::no_fault || diagnosis.may_be_healthy));
    const std::string most = truth.value("at_most", "high");
    CHECK((most == "high" || diagnosis.confidence != Diagnosis::Confidence::high));
    CHECK((most != "low" || diagnosis.confidence == Diagnosis::Confidence::low));
  }
}

TEST_CASE("a call that was left out is one call, though the loop ends, and may be older than the dumps",
          "[flight-recorder][real-dumps]") {
  const fs::path data = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/fr_shifts";
  const Diagnosis older = diagnose_folders({data / "left_out_before_the_oldest_record"});
  CHECK(older.finding.culprits == RankSet{4});
  CHECK_THAT(older.finding.headline,
             Contains("left out a call before all_reduce #81 on default_pg, the oldest that is "
                      "recorded"));
  const Diagnosis recorded = diagnose_folders({data / "left_out_one_call_before_the_end"});
  CHECK(recorded.finding.culprits == RankSet{4});
  CHECK_THAT(recorded.finding.headline, Contains("left out all_reduce #14 on default_pg"));
  for (const Diagnosis* diagnosis : {&older, &recorded}) {
    CHECK_THAT(diagnosis->finding.cause, Contains("those the others make one call later"));
  }
}

TEST_CASE("extra calls are found where the first of them met a call of another size, though it ended",
          "[flight-recorder][real-dumps]") {
  const fs::path data = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/fr_shifts";
  const Diagnosis diagnosis = diagnose_folders({data / "state_dict_on_one_rank"});
  CAPTURE(said(diagnosis));
  CHECK(diagnosis.finding.kind == FindingKind::extra_collective);
  CHECK(diagnosis.finding.culprits == RankSet{0});
  CHECK_THAT(diagnosis.finding.headline,
             Contains("rank 0 alone made all_gather #25 on default_pg; everything after it "
                      "is off by 2"));
  REQUIRE(diagnosis.finding.at);
  CHECK_THAT(diagnosis.finding.at->call.site, EndsWith("fsdp_state0.py:7"));
}

TEST_CASE("dumps of two processes of one rank are not two moments of a job",
          "[flight-recorder][real-dumps]") {
  const fs::path data = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/fr_evidence";
  const ReadResult read = read_recordings(
      {(data / "asleep_at_two_moments/first").string(), (data / "caught_at_two_moments/first").string()});
  CHECK(read.job.earlier.empty());
  REQUIRE(read.problems.size() == 4);
  CHECK_THAT(read.problems.front().message, Contains("is of another process of rank 0"));
}

}  // namespace rollcall::traces::real_dumps_test
