// Mistakes injected into working scripts: verdict, culprits, line and advice. The scripts are in
// tests/scripts/injected.py; the mistakes are those that users report from training with two and four ranks.

#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/scripts.h"

namespace rollcall::test::injected_mistakes_test {
namespace {

using nlohmann::json;

struct Injected {
  std::string name;
  int ranks;
  std::string verdict;
  std::vector<int> culprits;
  std::string mark;    // on the line that the report has to name
  std::string advice;  // contains these words
};

const std::string same_order = "look for one that only some ranks reach";
const std::string as_often = "let every rank run the same number of iterations";

// With two ranks, of which only one makes a call, either could be wrong: the rank that does not make it is named.
const std::vector<Injected>& injected() {
  static const std::vector<Injected> table{
      {"validation_on_rank_0", 4, "mismatch", {0}, "validation_on_rank_0", same_order},
      {"validation_on_rank_0_gpu", 4, "deadlock", {0}, "validation_on_rank_0_gpu", "only some ranks take"},
      {"validation_reduces_on_rank_0", 4, "mismatch", {0}, "validation_reduces_on_rank_0", same_order},
      {"validation_on_rank_0_2", 2, "mismatch", {0}, "validation_on_rank_0_2", same_order},
      {"uneven_2", 2, "deadlock", {0}, "step", "Join"},
      {"uneven_without_destroy_2", 2, "deadlock", {0}, "step", "Join"},
      {"bad_batches", 4, "deadlock", {1, 2}, "step", as_often},
      {"bad_batches_gpu", 4, "deadlock", {1, 2}, "step", as_often},
      {"early_stop_2", 2, "deadlock", {1}, "step", "no break"},
      {"early_stop_then_barrier", 4, "mismatch", {1, 3}, "early_stop_then_barrier", same_order},
      {"early_stop_by_callback_2", 2, "mismatch", {1}, "early_stop_by_callback_2", same_order},
      {"trainer_stops_2", 2, "mismatch", {1}, "trainer_stops_2", same_order},
      {"checkpoint_on_rank_0_2", 2, "deadlock", {1}, "checkpoint_on_rank_0_2", "look for a branch"},
      {"full_tensor_on_rank_0_2", 2, "mismatch", {0}, "full_tensor_on_rank_0_2", same_order},
      {"barrier_on_rank_0_2", 2, "mismatch", {0}, "barrier_on_rank_0_2", same_order},
      {"variable_length", 4, "mismatch", {3}, "variable_length", "pad them"},
      {"shape_by_rank", 3, "mismatch", {1}, "shape_by_rank", "equally large"},
      {"other_lists", 3, "mismatch", {2}, "other_lists", "loop over all the lists"},
      {"extra_pipeline_step_2",
       2,
       "deadlock",
       {1},
       "extra_pipeline_step_2",
       "let both ranks run the same number of iterations"},
      {"wrong_neighbor_gpu", 4, "deadlock", {1}, "wrong_neighbor_gpu", "let rank 1 send to rank 2"},
      {"early_stop_after_reading", 4, "mismatch", {1}, "early_stop_after_reading", same_order},
      {"other_average_period_gpu", 4, "deadlock", {0}, "other_average_period_gpu", "every rank of the group"},
      {"exception_on_one_rank", 4, "deadlock", {2}, "exception_on_one_rank", "fix the exception"},
      {"unused_parameter_2", 2, "deadlock", {1}, "step", "find_unused_parameters=True"},
      {"hook_without_all_reduce", 4, "wrong_result", {1, 2, 3}, "hook_without_all_reduce", "main_hook"},
  };
  return table;
}

}  // namespace

TEST_CASE("mistakes put into scripts are named with their rank, their line and advice", "[record]") {
  if (!has_torch() || recorded_torch() == "1.13") {
    return;  // fully_shard and tensor parallel are newer
  }
  for (const Injected& mistake : injected()) {
    INFO(mistake.name);
    const Shell shell;
    const Outcome recorded =
        shell.rollcall(fmt::format("record -n {} --ranks-see {} --format json -o out.json {} {}",
                                   mistake.ranks, mistake.ranks, script("injected"), mistake.name));
    CHECK(recorded.code == 1);
    const json report = json::parse(recorded.out);
    CHECK(report.at("verdict") == mistake.verdict);
    CHECK(report.at("culprits") == json(mistake.culprits));
    CHECK_THAT(report.dump(), Contains(mistake_line(mistake.mark, "injected")));
    CHECK_THAT(report.at("advice").get<std::string>(), Contains(mistake.advice));
  }
}

}  // namespace rollcall::test::injected_mistakes_test
