// Compares what a backend does, case by case, with the simulator's prediction. Without a GPU the cases run on Gloo.

#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "real/nccl/gpu_probe.h"
#include "real/nccl/one_rank.h"
#include "scenarios/prove/programs.h"
#include "scenarios/prove/prove.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"
#include "tests/conformance/real_runs.h"
#include "tests/shell.h"

namespace rollcall::prove::prove_test {
namespace {

using Judgement = Proof::Judgement;

std::string word_of(RankClass::State state) {
  return state == RankClass::State::finished  ? "completes"
         : state == RankClass::State::waiting ? "hangs"
                                              : std::string(to_string(state));
}

}  // namespace

TEST_CASE("an outcome agrees, is allowed, or differs", "[prove]") {
  CHECK(judge("rank 0 hangs, rank 1 hangs", "rank 0 hangs, rank 1 hangs", "") == Judgement::agrees);
  CHECK(judge("rank 0 hangs, rank 1 hangs", "rank 0 hangs, rank 1 completes", "hangs|completes") ==
        Judgement::allowed);
  CHECK(judge("rank 0 hangs, rank 1 hangs", "rank 0 hangs, rank 1 dies", "hangs|completes") ==
        Judgement::differs);
  CHECK(judge("rank 0 hangs, rank 1 hangs", "rank 0 completes, rank 1 completes", "") == Judgement::differs);
}

TEST_CASE("several results can be predicted of one trial", "[prove]") {
  CHECK(real::is_predicted("ncclSuccess", "ncclSuccess"));
  CHECK(real::is_predicted("ncclInvalidArgument|ncclInvalidUsage", "ncclInvalidUsage"));
  CHECK_FALSE(real::is_predicted("ncclInvalidArgument|ncclInvalidUsage", "ncclInvalid"));
  CHECK_FALSE(real::is_predicted("ncclSuccess", "hang"));
}

TEST_CASE("every trial on one rank has a name of its own, a prediction and a source", "[prove]") {
  std::set<std::string_view> names;
  for (const real::Trial& trial : real::one_rank_trials()) {
    INFO(trial.name);
    CHECK(names.insert(trial.name).second);
    CHECK_THAT(std::string(trial.predicted), StartsWith("nccl"));
    CHECK_FALSE(trial.source.empty());
  }
}

TEST_CASE("on nccl the simulator chooses an outcome that every mistake's row allows", "[prove][fiber]") {
  for (const Program& program : wrong_programs()) {
    const Report report = sim::run({.world_size = 2, .backend = "nccl"}, program.body);
    for (Rank rank = 0; rank < 2; ++rank) {
      INFO(program.name << ": rank " << rank << " " << word_of(report.of(rank).state));
      CHECK(real::is_predicted(program.on_gpus, word_of(report.of(rank).state)));
    }
  }
  for (const Program& program : right_programs()) {
    INFO(program.name);
    CHECK(verdict_word(sim::run({.world_size = 2, .backend = "nccl"}, program.body).verdict) == "ok");
  }
}

TEST_CASE("doctor proves on Gloo what the simulator says, and keeps it", "[prove][real]") {
  if (!test::has_gloo()) {
    return;
  }
  const test::Shell shell;
  const test::Outcome outcome = shell.rollcall("doctor --prove --backend gloo --record proofs.result.json");
  CHECK_THAT(outcome.out, Contains("cases on gloo, simulated and real"));
  CHECK(outcome.code == 0);
  const auto result = nlohmann::json::parse(test::contents(shell.path("proofs.result.json")));
  CHECK(result.at("time_valid") == false);
  CHECK(result.at("machine").at("libraries").contains("nccl library"));
  CHECK(result.at("proofs").size() == wrong_programs().size() + right_programs().size());
  for (const auto& proof : result.at("proofs")) {
    INFO(proof.dump());
    CHECK(proof.at("judgement") != "differs");
  }
}

TEST_CASE("a signal that ends doctor --prove leaves the cases that were over", "[prove][real]") {
  if (!test::has_gloo()) {
    return;
  }
  const test::Shell shell;
  const test::Outcome outcome = shell.rollcall(
      "doctor --prove --backend gloo --record proofs.result.json & "
      "until [ -s proofs.result.json ]; do sleep 0.02; done; kill -TERM $!; wait $!");
  CHECK(outcome.code == 2);
  const auto result = nlohmann::json::parse(test::contents(shell.path("proofs.result.json")));
  CHECK(result.at("cases") == wrong_programs().size() + right_programs().size());
  CHECK(result.at("proofs").size() >= 1);
  CHECK(result.at("proofs").size() < result.at("cases"));
}

TEST_CASE("without a GPU nothing about NCCL is proven, and that is said", "[prove][real]") {
  if (real::probe_gpus().problem.empty()) {
    return;  // there are GPUs
  }
  const test::Shell shell;
  const test::Outcome outcome = shell.rollcall("doctor --prove --backend nccl --record proofs.result.json");
  CHECK(outcome.code == 77);
  CHECK_THAT(outcome.err, StartsWith("rollcall: not possible here: nccl: "));
  CHECK_FALSE(std::filesystem::exists(shell.path("proofs.result.json")));
  for (std::size_t trial = 0; trial < real::one_rank_trials().size(); ++trial) {
    CHECK(real::try_one_rank(trial, 20 * second) != "ncclSuccess");
  }
}

}  // namespace rollcall::prove::prove_test
