// Replicas of DistributedDataParallel that drift apart: no call is wrong, and every rank saves another model.

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/scripts.h"

namespace rollcall::test::record_replicas_test {

TEST_CASE("replicas that differ after their last step are a wrong result, whatever was reduced meanwhile",
          "[record]") {
  if (!has_torch()) {
    return;
  }
  struct Job {
    std::string name;
    std::vector<int> culprits;  // empty: nothing is wrong
    std::string says;
  };
  const std::vector<Job> jobs = {
      {"are_equal", {}, "ok"},
      {"passes_by_the_wrapper",
       {0, 1, 2, 3},
       "the replicas of one model differ at the end: ranks 0-3 have 4"},
      {"has_a_rate_of_its_own", {2}, "at the end, the replica of rank 2 differs from the others'"},
      {"loads_the_best_on_rank_0", {}, "ok"},
  };
  for (const Job& job : jobs) {
    INFO(job.name);
    const Shell shell;
    const Outcome outcome = shell.rollcall("record -n 4 --simulate --format json -o out.json " +
                                           script("replicas") + " " + job.name);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == (job.culprits.empty() ? 0 : 1));
    const nlohmann::json report = nlohmann::json::parse(outcome.out);
    CHECK_THAT(outcome.out, Contains(job.says));
    if (!job.culprits.empty()) {
      CHECK(report.at("culprits") == nlohmann::json(job.culprits));
      CHECK_THAT(report.at("replay").get<std::string>(), Contains("record") && Contains("replicas.py"));
      CHECK_THAT(contents(shell.path("out.json")), Contains("Not in this scenario"));
    }
  }
}

TEST_CASE("models that differ from the beginning and are not wrapped may be meant so", "[record]") {
  if (!has_torch() || recorded_torch() == "1.13") {
    return;  // which tells of no step before it is made
  }
  const Shell shell;
  const Outcome outcome =
      shell.rollcall("record -n 4 --simulate " + script("replicas") + " trains_models_of_its_own");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(
      outcome.err,
      Contains("warning: no call carried gradients or parameters: 4 ranks trained models of their own"));
}

}  // namespace rollcall::test::record_replicas_test
