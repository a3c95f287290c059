// Exports every shipped scenario that hangs or disagrees as Flight Recorder dumps, and diagnoses these: the same ranks
// must be to blame. If they are not, the table says what the recorder cannot see.

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "scenarios/recordings/recorded_run.h"
#include "sim/diagnose/dump_judge.h"
#include "sim/report/blame.h"
#include "tests/catch.h"
#include "tests/folder.h"
#include "tests/shipped_scenarios.h"
#include "traces/dumps/dump_writer.h"
#include "traces/formats/recordings.h"

namespace rollcall::scenario::exported_dumps_test {
namespace {

namespace fs = std::filesystem;

// By file: why the diagnosis of the dumps names other ranks than the simulation does.
constexpr const char* groups =
    "calls that make and end groups are not recorded, nor the ranks that wait in them";
constexpr const char* store = "the store is not recorded, nor the ranks that wait for a key";
constexpr const char* messages = "Gloo's recorder keeps collectives only";
constexpr const char* arguments = "roots, reduce ops and splits are not recorded: the calls look alike";
constexpr const char* communicator =
    "a call is recorded when it has a communicator, and making that one hangs";
constexpr const char* hooks =
    "stacks say which calls are a Join hook's, and not how many a hook should make: the rank without it is "
    "the odd one";

const std::map<std::string, std::string> differences = {
    {"destroy_after_exit.json", groups},
    {"new_group_inside_branch.json", groups},
    {"new_group_local.json", groups},
    {"new_group_members_only.json", groups},
    {"new_group_skipped.json", groups},
    {"new-group-inside-branch.json", groups},
    {"uncoordinated-destroy-orphans.json", groups},
    {"init_device_mesh.json", communicator},
    {"key_not_set.json", store},
    {"store_nobody_serves.json", store},
    {"agent-store-on-private-port.json", store},
    {"monitored_barrier.json", "it is made of messages, and Gloo's recorder keeps collectives only"},
    {"parameter_server_round_robin.json", messages},
    {"pipeline_1f1b_send_send.json", messages},
    {"root_mismatch.json", arguments},
    {"reduce_op_mismatch.json", arguments},
    {"all-to-all-splits-disagree.json", arguments},
    {"leader-local-source-global.json", "a root outside the group raises before the call is recorded"},
    {"checkpoint-monitor-is-rank-local.json",
     "a dump ends where the ranks part, so nothing decides between two of them; a run goes on without the "
     "barrier"},
    {"hook_too_long.json", hooks},
    {"sync_batch_norm_join.json", hooks},
    {"ddp_skip_unused_join.json", "Gloo's rank that gets the longer message aborts, and leaves no dump"},
};

bool is_hang_or_mismatch(const Report& report) {
  const std::string_view verdict = verdict_word(report.verdict);
  return verdict == "deadlock" || verdict == "mismatch";
}

// A call is recorded when it has a communicator. If making the first one hangs, dumps are empty.
bool has_records(const check::JobDump& job) {
  return std::ranges::any_of(job.ranks, [](const check::RankDump& dump) { return !dump.records.empty(); });
}

using Writer = std::string (*)(const check::JobDump& job, const check::RankDump& dump);

check::JobDump written_and_read(const check::JobDump& job, Writer write) {
  const test::Folder folder;
  for (const check::RankDump& dump : job.ranks) {
    folder.write("comm_lib_trace_rank_" + std::to_string(dump.rank), write(job, dump));
  }
  traces::ReadResult result = traces::read_recordings({folder.path()});
  CHECK(result.problems.empty());
  return std::move(result.job);
}

std::string summary(const check::JobDump& job) {
  if (job.ranks.empty()) {
    return "no dumps";
  }
  const Diagnosis diagnosis = check::judge_dump(job);
  return fmt::format("{}: {}", to_string(diagnosis.finding.kind), to_string(diagnosis.finding.culprits));
}

RankSet culprits_of(const check::JobDump& job) {
  return job.ranks.empty() ? RankSet() : check::judge_dump(job).finding.culprits;
}

// If nothing decides between the sides of a disagreement, the simulation names all of them, and the diagnosis may name
// one.
bool name_the_same(const RankSet& diagnosed, const Verdict& verdict) {
  const RankSet& simulated = finding_of(verdict)->culprits;
  const bool are_among = !diagnosed.empty() && simulated.contains(diagnosed);
  return diagnosed == simulated || (are_among && is_undecided(verdict));
}

}  // namespace

TEST_CASE("the dumps of a simulated hang blame the ranks that the simulation blames",
          "[flight-recorder][fiber]") {
  std::size_t same = 0;
  for (const fs::path& file : test::shipped_scenarios()) {
    const RecordedRun run = record_run(load_scenario(file.string()));
    if (!is_hang_or_mismatch(run.report)) {
      continue;
    }
    const check::JobDump pickled = written_and_read(run.job, traces::write_dump_pickle);
    const check::JobDump as_json = written_and_read(run.job, traces::write_dump_json);
    const Finding& finding = *finding_of(run.report.verdict);
    const bool agrees = name_the_same(culprits_of(pickled), run.report.verdict);
    const auto known = differences.find(file.filename().string());
    CAPTURE(file.filename().string(), finding.kind, to_string(finding.culprits), summary(pickled),
            summary(as_json), to_string(run.without_dump));
    CHECK(agrees == (known == differences.end() && (has_records(run.job) || run.job.ranks.empty())));
    same += agrees ? 1 : 0;
  }
  CHECK(same > 0);
}

TEST_CASE(
    "dumps of a hang are sure of no other fault than the simulation proves, nor half sure of other ranks",
    "[flight-recorder][fiber]") {
  std::size_t sure = 0;
  for (const fs::path& file : test::shipped_scenarios()) {
    const RecordedRun run = record_run(load_scenario(file.string()));
    if (!is_hang_or_mismatch(run.report) || run.job.ranks.empty()) {
      continue;
    }
    const Diagnosis diagnosis = check::judge_dump(written_and_read(run.job, traces::write_dump_pickle));
    const Finding& simulated = *finding_of(run.report.verdict);
    const bool is_sure = diagnosis.confidence == Diagnosis::Confidence::high;
    const bool are_same_ranks = name_the_same(diagnosis.finding.culprits, run.report.verdict);
    CAPTURE(file.filename().string(), simulated.kind, to_string(simulated.culprits), diagnosis.finding.kind,
            to_string(diagnosis.finding.culprits));
    CHECK((are_same_ranks || diagnosis.confidence == Diagnosis::Confidence::low));
    CHECK((are_same_fault(diagnosis.finding.kind, simulated.kind) || !is_sure));
    const bool has_reason =
        !diagnosis.evidence.empty() || !diagnosis.would_settle.empty() || diagnosis.finding.repair;
    CHECK((is_sure || has_reason));
    sure += is_sure ? 1 : 0;
  }
  CHECK(sure > 10);
}

TEST_CASE("rank 0 sends to 2, rank 1 receives from 0: dumps leave open whether a peer is wrong",
          "[flight-recorder][fiber]") {
  const RecordedRun run =
      record_run(parse_scenario(R"({"version": 1, "world_size": 3, "backend": "nccl", "program": [
    {"all_reduce": {"numel": 4}},
    {"if": "rank == 0", "do": [{"send": {"numel": 4, "dst": 1}}, {"send": {"numel": 4, "dst": 2}},
                               {"send": {"numel": 4, "dst": 2}}]},
    {"if": "rank > 0", "do": [{"recv": {"numel": 4, "src": 0}}]},
    {"if": "rank == 1", "do": [{"recv": {"numel": 4, "src": 0}}]}]})",
                                "three.json"));
  CHECK(kind_of(run.report.verdict) == FindingKind::wrong_peer);
  CHECK(finding_of(run.report.verdict)->culprits == RankSet{0});
  const Diagnosis diagnosis = check::judge_dump(run.job);
  CHECK(diagnosis.confidence == Diagnosis::Confidence::low);
  CHECK(std::ranges::find(diagnosis.alternatives, FindingKind::p2p_mismatch) != diagnosis.alternatives.end());
}

TEST_CASE("who sends too much is to blame, although Gloo ended the process of its peer",
          "[flight-recorder][fiber]") {
  const RecordedRun run = record_run(parse_scenario(R"({"version": 1, "world_size": 6, "backend": "gloo",
    "mesh": {"shape": [3, 2], "dim_names": ["pp", "dp"]},
    "program": [{"all_reduce": {"numel": "rank == 5 ? 1012 : 1000", "group": "dp"}}]})",
                                                    "ended.json"));
  CHECK(run.without_dump == RankSet{4});
  const Diagnosis diagnosis = check::judge_dump(run.job);
  CHECK(diagnosis.finding.kind == FindingKind::size_mismatch);
  CHECK(diagnosis.finding.culprits == RankSet{5});
  CHECK(diagnosis.confidence != Diagnosis::Confidence::high);
}

TEST_CASE(
    "on Gloo, whom few ranks wait for is the best guess where others may wait in messages, and no alarm",
    "[flight-recorder][fiber]") {
  const RecordedRun run = record_run(parse_scenario(R"({"version": 1, "world_size": 6, "backend": "gloo",
    "mesh": {"shape": [2, 3], "dim_names": ["pp", "dp"]},
    "program": [{"for": "step", "in": [0, 4], "do": [
      {"if": "pp == 0", "do": [{"send": {"dst": "rank + 3", "numel": 8}}],
       "else": [{"recv": {"src": "rank - 3", "numel": 8}}]},
      {"if": "rank == 4 && step == 2", "do": [{"break": true}]},
      {"all_reduce": {"numel": 4, "group": "dp"}}]}]})",
                                                    "few.json"));
  const Diagnosis diagnosis = check::judge_dump(run.job);
  CHECK(diagnosis.finding.culprits == RankSet{4});
  CHECK(diagnosis.may_be_healthy);
  CHECK(diagnosis.confidence == Diagnosis::Confidence::low);
}

TEST_CASE("the dumps of a simulated job that ends well are silent", "[flight-recorder][fiber]") {
  for (const fs::path& file : test::shipped_scenarios()) {
    const RecordedRun run = record_run(load_scenario(file.string()));
    if (finding_of(run.report.verdict) != nullptr || run.job.ranks.empty()) {
      continue;
    }
    const check::JobDump job = written_and_read(run.job, traces::write_dump_pickle);
    CAPTURE(file.filename().string(), summary(job));
    CHECK(check::judge_dump(job).finding.kind == FindingKind::no_fault);
  }
}

TEST_CASE("a rank whose process is gone leaves no dump", "[flight-recorder][fiber]") {
  const Scenario scenario = load_scenario(
      (fs::path(ROLLCALL_SOURCE_DIR) / "scenarios/examples/hangs/crash_while_others_wait.json").string());
  const RecordedRun run = record_run(scenario);
  CHECK(run.without_dump == RankSet{2});
  REQUIRE(run.job.ranks.size() == 3);
  CHECK(run.job.ranks[2].rank == 3);
}

}  // namespace rollcall::scenario::exported_dumps_test
