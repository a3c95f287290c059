#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_test_macros.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <rollcall/sim/engine/simulate.h>
#include <rollcall/viz/catch2.h>

#include "program.h"

using namespace rollcall;

TEST_CASE("rank 0 leaves the loop too early") {
  const Report report = sim::run({.world_size = 4, .backend = "gloo"}, uneven);
  REQUIRE_THAT(report, IsDeadlock().missing({0}).at("all_reduce", 5).in("gradients"));
}

TEST_CASE("as many inputs on every rank end well") {
  const Report report = sim::run({.world_size = 4, .backend = "gloo"}, [](Rank) {
    Tensor loss = Tensor::ones({1});
    all_reduce(loss);
    print("loss " + std::to_string(loss.item()));
  });
  REQUIRE_THAT(report, IsOk() && Printed(3, "loss 4.000000"));
}
