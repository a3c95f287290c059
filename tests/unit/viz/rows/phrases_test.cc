#include "viz/rows/phrases.h"

#include "tests/catch.h"
#include "tests/unit/viz/sample_reports.h"

namespace rollcall::viz::phrases_test {

TEST_CASE("a duration is told in the unit that suits it") {
  CHECK(duration_phrase(0) == "0 ns");
  CHECK(duration_phrase(999) == "999 ns");
  CHECK(duration_phrase(1'000) == "1 us");
  CHECK(duration_phrase(41'250) == "41.25 us");
  CHECK(duration_phrase(2'000'100) == "2 ms");  // the omitted part is less than a thousandth
  CHECK(duration_phrase(2'005'000) == "2.005 ms");
  CHECK(duration_phrase(3'600 * second) == "3600 s");
}

TEST_CASE("one is singular") {
  CHECK(count_phrase(1, "call") == "1 call");
  CHECK(count_phrase(0, "call") == "0 calls");
  CHECK(count_phrase(2, "call") == "2 calls");
}

TEST_CASE("a call shows what the collective needs, and its group unless that is the world") {
  Call call = samples::all_reduce(5);
  CHECK(call_with_arguments(call) == "all_reduce #5 (float32 x 1, SUM)");
  call.op = "broadcast";
  call.reduce_op = "";
  call.root = 2;
  call.group = "dp";
  CHECK(call_with_arguments(call) == "broadcast #5 on dp (float32 x 1, root 2)");
  Call barrier;
  barrier.op = "barrier";
  barrier.group = "world";
  CHECK(call_with_arguments(barrier) == "barrier #0");
}

TEST_CASE("a call's origin is its label and its site, as far as they are known") {
  Call call = samples::all_reduce(5, "");
  CHECK(call_origin(call).empty());
  call.label = "counter.forward";
  CHECK(call_origin(call) == " from counter.forward");
  call.site = "train.json:12:7";
  CHECK(call_origin(call) == " from counter.forward at train.json:12:7");
}

TEST_CASE("every state of a rank reads as a sentence") {
  RankClass ranks = samples::finished({0}, 5);
  CHECK(state_phrase(ranks, inputs_phrase(5, 5)) == "finished after 5 inputs");
  CHECK(state_phrase(ranks, inputs_phrase(-1, -1)) == "finished");
  CHECK(state_phrase(ranks, inputs_phrase(5, 1004)) == "finished after 5 to 1004 inputs");
  ranks.state = RankClass::State::running;
  CHECK(state_phrase(ranks, inputs_phrase(1, 1)) == "still running after 1 input");
  ranks = samples::raised({0}, "ValueError: bad sample");
  CHECK(state_phrase(ranks, "3 inputs") == "raised after 3 inputs: ValueError: bad sample");
  CHECK(state_phrase(ranks, "") == "raised ValueError: bad sample");
  ranks.state = RankClass::State::crashed;
  CHECK(state_phrase(ranks, "") == "crashed: ValueError: bad sample");
  CHECK(state_phrase(samples::waiting({1}, samples::all_reduce(5), {0}), "6 inputs") ==
        "waiting in all_reduce #5 (float32 x 1, SUM) at uneven_inputs.json:14:11, for rank 0");
}

}  // namespace rollcall::viz::phrases_test
