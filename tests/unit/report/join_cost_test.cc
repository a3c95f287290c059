#include "sim/report/join_cost.h"
#include "tests/catch.h"

namespace rollcall::join_cost_test {

TEST_CASE("a context with uneven inputs costs the time from the first joining to the last", "[report]") {
  const JoinCost cost = join_cost("world",
                                  {{.rank = 0, .steps = 5, .shadow_calls = 4, .joined = 100, .left = 150},
                                   {.rank = 1, .steps = 6, .shadow_calls = 1, .joined = 148, .left = 150},
                                   {.rank = 2, .steps = 5, .shadow_calls = 4, .joined = 100, .left = 150}},
                                  200);
  CHECK(cost.is_uneven());
  CHECK(cost.ranks == std::vector<JoinedRanks>{{RankSet::of({0, 2}), 5, 4, 50}, {RankSet{1}, 6, 1, 2}});
  CHECK(cost.active == std::vector<ActiveRanks>{{0, 5, 3}, {5, 6, 1}});
  CHECK(cost.mean_active_thousandths() == 2667);  // 16 of 6 steps
  CHECK(cost.inputs_lost_permille() == 63);       // 1 of 16
  CHECK(cost.time_saved_permille() == 250);
  CHECK(cost.advice() ==
        "giving every rank the same number of inputs (drop_last) would lose 6.3 % of the inputs and save "
        "25.0 % of the time");
}

TEST_CASE("even inputs cost nothing, and a rank without inputs cannot be dropped to", "[report]") {
  const JoinCost even = join_cost("dp", {{.rank = 0, .steps = 2}, {.rank = 1, .steps = 2}}, 10);
  CHECK_FALSE(even.is_uneven());
  CHECK(even.advice().empty());
  CHECK(even.active == std::vector<ActiveRanks>{{0, 2, 2}});
  const JoinCost empty = join_cost("dp", {{.rank = 0, .steps = 0}, {.rank = 1, .steps = 2}}, 10);
  CHECK(empty.advice().find("no input at all") != std::string::npos);
  CHECK(empty.active == std::vector<ActiveRanks>{{0, 2, 1}});
  CHECK(join_cost("dp", {{.rank = 0}, {.rank = 1}}, 0).active.empty());
}

}  // namespace rollcall::join_cost_test
