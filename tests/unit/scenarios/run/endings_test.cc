// Programs that end with destroy_process_group, as nearly every script does: it blocks on one backend and not on the
// other, but the same rank is to blame.

#include <string>

#include "scenarios/run/runner.h"
#include "tests/catch.h"
#include "tests/unit/scenarios/format/scenario_texts.h"

namespace rollcall::scenario::endings_test {
namespace {

struct Ending {
  std::string name;
  int ranks;
  std::string program;
  std::string culprits;
  FindingKind kind;
  std::string cause;
  std::string advice;
};

const std::string step = R"({"all_reduce": {"numel": 64, "label": "grads", "site": "train.py:9"}})";

std::string steps(const std::string& count) {
  return R"({"repeat": ")" + count + R"(", "do": [)" + step + "]}";
}

std::string only(const std::string& ranks, const std::string& statement) {
  return R"({"if": ")" + ranks + R"(", "do": [)" + statement + "]}";
}

Report report_of(const Ending& ending, const std::string& backend) {
  return run(parse_scenario(R"({"world_size": )" + std::to_string(ending.ranks) + R"(, "backend": ")" +
                                backend + R"(", "program": [)" + ending.program +
                                R"(, {"destroy_process_group": {}}]})",
                            "test.json"));
}

}  // namespace

TEST_CASE("the statement that one rank skips or adds is named, although calls of one size meet afterwards",
          "[scenarios][judge]") {
  const std::string loss = R"({"all_reduce": {"numel": 1, "site": "train.py:4"}})";
  const std::string metric = R"({"all_reduce": {"numel": 1, "site": "train.py:6"}})";
  const auto report_of_loop = [](const std::string& body) {
    return run(parse_scenario(
        R"({"world_size": 8, "backend": "nccl", "program": [{"for": "i", "in": [0, 3], "do": [)" + body +
            "]}]}",
        "test.json"));
  };
  const Report extra = report_of_loop(loss + "," + only("rank == 5 && i == 1", metric));
  const Finding& added = *finding_of(extra.verdict);
  CHECK(added.culprits == RankSet{5});
  CHECK(added.cause.starts_with(
      "rank 5 makes the all_reduce at train.py:6 once, and ranks 0-4,6-7 never make it; the calls after it"));
  REQUIRE(added.first_divergence);
  CHECK(added.first_divergence->seq == 2);
  REQUIRE(added.repair);
  REQUIRE(added.repair->steps.size() == 1);
  CHECK(added.repair->steps.front().text.find("train.py:6") != std::string::npos);

  const Report skipped = report_of_loop(only("!(rank == 5 && i == 1)", loss) + "," + metric);
  const Finding& missing = *finding_of(skipped.verdict);
  CHECK(missing.culprits == RankSet{5});
  CHECK(missing.cause.starts_with(
      "rank 5 makes the all_reduce at train.py:4 twice, and ranks 0-4,6-7 3 times"));
  REQUIRE(missing.repair);
  REQUIRE(missing.repair->steps.size() == 1);
  CHECK(missing.repair->steps.front().text.find("train.py:4 before all_reduce") != std::string::npos);
}

TEST_CASE("a rank that leaves out a collective of a mesh is to blame in a job of any size",
          "[scenarios][judge]") {
  for (const int rows : {4, 40}) {
    const std::string program = only("rank != 45", R"({"all_reduce": {"numel": 10, "group": "tp"}})") +
                                R"(, {"all_reduce": {"numel": 10, "group": "dp"}}, {"barrier": {}})";
    const Report report = run(parse_scenario(
        R"({"world_size": )" + std::to_string(rows * 30) + R"(, "backend": "nccl", "mesh": {"shape": [)" +
            std::to_string(rows) + R"(, 30], "dim_names": ["dp", "tp"]}, "program": [)" + program + "]}",
        "test.json"));
    const Finding& finding = *finding_of(report.verdict);
    CHECK(finding.kind == FindingKind::missing_participant);
    CHECK(finding.culprits == RankSet{45});
    CHECK(finding.headline.starts_with("rank 45 leaves out all_reduce on tp1"));
  }
}

TEST_CASE("a rank that has left the loop is told from one that skips a call in it", "[scenarios][judge]") {
  const auto finding_in = [](const std::string& program) {
    const Report report = run(
        parse_scenario(R"({"world_size": 4, "backend": "nccl", "program": [)" + program + "]}", "test.json"));
    CHECK(std::holds_alternative<Mismatch>(report.verdict));
    return *finding_of(report.verdict);
  };
  const std::string metric = R"({"all_reduce": {"numel": 1, "site": "train.py:12"}})";
  const Finding left = finding_in(steps("rank == 2 ? 3 : 9") + "," + metric);
  CHECK(left.culprits == RankSet{2});
  CHECK(left.cause.ends_with("; rank 2 made this all_reduce 3 times, and ranks 0-1,3 are in number 4"));
  CHECK(left.advice.find("same number of iterations") != std::string::npos);

  const Finding skips = finding_in(R"({"for": "i", "in": [0, 9], "do": [)" +
                                   only("rank != 2 || i != 3", step) + "," + metric + "]}");
  CHECK(skips.culprits == RankSet{2});
  CHECK(skips.advice.find("same number of iterations") == std::string::npos);
}

TEST_CASE("a rank that its recorder stopped has raised nothing", "[scenarios][judge]") {
  const Report report = run(parse_scenario(R"({"world_size": 3, "backend": "gloo", "program": [
    {"if": "rank > 0", "do": [
      {"raise": {"type": "Stopped", "message": "made no call for too long", "site": "lock.py:16"}}]},
    {"barrier": {}}]})",
                                           "test.json"));
  const Finding& finding = *finding_of(report.verdict);
  CHECK(finding.headline ==
        "ranks 1-2 made no further call before barrier #0 on world; rank 0 waits for them");
  CHECK(finding.cause.starts_with("ranks 1-2 made no call for too long, and were stopped"));
  CHECK(finding.advice.starts_with("look at what that line waits for"));
}

TEST_CASE("an exception that names its remedy is not only to be fixed", "[scenarios][judge]") {
  const Report report = run(parse_scenario(R"({"world_size": 2, "backend": "gloo", "program": [
    {"raise": {"type": "RuntimeError",
               "message": "Expected to have finished reduction in the prior iteration before starting a new one."}}]})",
                                           "test.json"));
  CHECK(finding_of(report.verdict)->advice.find("find_unused_parameters=True") != std::string::npos);
}

TEST_CASE("whoever waits in destroy_process_group has left, on nccl as on gloo", "[scenarios][judge]") {
  const std::string loop = "run the same number of iterations";
  const std::string branch = "branch";
  const Ending endings[] = {
      {"uneven shards, two ranks", 2, steps("rank == 1 ? 4 : 5"), "1", FindingKind::missing_participant,
       "rank 1 made the all_reduce in 'grads' at train.py:9 4 times, and rank 0 waits in number 5", loop},
      {"uneven shards, four ranks", 4, steps("rank == 0 ? 6 : 5"), "0", FindingKind::missing_participant,
       "ranks 1-3 made the all_reduce in 'grads' at train.py:9 5 times", loop},
      {"an early stop", 4, steps("rank == 2 ? 3 : 9"), "2", FindingKind::missing_participant,
       "rank 2 made the all_reduce in 'grads' at train.py:9 3 times, and ranks 0-1,3 wait in number 4", loop},
      {"skipped batches", 4, steps("rank < 2 ? 7 : 6"), "2-3", FindingKind::missing_participant,
       "wait in number 7", loop},
      {"validation on rank 0", 4,
       steps("3") + "," + only("rank == 0", R"({"broadcast": {"numel": 8, "site": "val.py:3"}})"), "0",
       FindingKind::missing_participant,
       "at val.py:3 is reached by rank 0 alone; the last call of ranks 1-3 is the all_reduce in 'grads' at "
       "train.py:9",
       branch},
      {"a checkpoint on rank 0", 2, steps("3") + "," + only("rank == 0", R"({"all_gather": {"numel": 800}})"),
       "1", FindingKind::missing_participant, "the last call of rank 1 is the all_reduce in 'grads'", branch},
      {"one more pipeline step", 2,
       steps("1") + "," + only("rank == 0", R"({"send": {"dst": 1, "numel": 4}})"), "1",
       FindingKind::unmatched_send, "rank 1 finished without the matching recv", "one recv for every send"},
  };
  for (const Ending& ending : endings) {
    for (const std::string backend : {"gloo", "nccl"}) {
      INFO(ending.name << " on " << backend);
      const Report report = report_of(ending, backend);
      const Finding* finding = finding_of(report.verdict);
      REQUIRE(finding != nullptr);
      CHECK(finding->kind == ending.kind);
      CHECK(to_string(finding->culprits) == ending.culprits);
      CHECK_THAT(finding->cause, Contains(ending.cause));
      CHECK_THAT(finding->advice, Contains(ending.advice) && !Contains("destroy_process_group"));
    }
  }
}

TEST_CASE("where nobody waits elsewhere, destroy_process_group itself is what hangs", "[scenarios][judge]") {
  const Report report = run(parse_scenario(
      R"({"world_size": 3, "backend": "nccl", "program": [{"barrier": {}},
          {"if": "rank != 1", "do": [{"destroy_process_group": {}}]}]})",
      "test.json"));
  const Finding* finding = finding_of(report.verdict);
  REQUIRE(finding != nullptr);
  CHECK(to_string(finding->culprits) == "1");
  CHECK(finding->at->call.op == "destroy_process_group");
  CHECK_THAT(finding->advice, Contains("call destroy_process_group on every member"));
}

}  // namespace rollcall::scenario::endings_test
