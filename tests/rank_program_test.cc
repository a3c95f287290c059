// A rank program in C++, tested like any other code. The README shows the lines between the two marks;
// tests/readme_test.cc checks that they are the same.

#include <memory>

#include "tests/catch.h"

// README begins
#include <rollcall/sim/dist.h>
#include <rollcall/sim/engine/simulate.h>
#include <rollcall/viz/catch2.h>

using namespace rollcall;

void train(Rank rank) {  // called once per rank
  const int inputs = rank == 0 ? 5 : 6;
  for (int i = 0; i < inputs; ++i) {
    Scope scope("gradients");
    all_reduce(Tensor::ones({1000}));
  }
}

TEST_CASE("rank 0 leaves the training loop too early", "[fiber]") {
  const Report report = sim::run({.world_size = 4, .backend = "gloo"}, train);
  REQUIRE_THAT(report, IsDeadlock().missing({0}).waiting({1, 2, 3}).at("all_reduce", 5));
}
// README ends

namespace {

// The same gradients as a Joinable: the hook repeats the calls of an iteration with zeros.
class Gradients final : public Joinable {
 public:
  void average() {
    Join::notify_join_context(*this);
    add(1);
  }

  std::unique_ptr<JoinHook> join_hook(const Kwargs&) override { return std::make_unique<Hook>(); }
  Device join_device() const override { return cpu_device; }
  ProcessGroup join_process_group() const override { return world(); }

 private:
  struct Hook final : JoinHook {
    void main_hook() override { add(0); }
  };

  static void add(double value) {
    Scope scope("gradients", "gradients");  // pairs an iteration's calls only with its hook's
    all_reduce(Tensor::full({1000}, value));
  }
};

void train_in_join(Rank rank) {
  Gradients gradients;
  Join({gradients}).run([&] {
    for (int i = 0; i < (rank == 0 ? 5 : 6); ++i) {
      gradients.average();
    }
  });
}

}  // namespace

TEST_CASE("inside Join the same loop ends on every rank", "[fiber]") {
  const Report report = sim::run({.world_size = 4, .backend = "gloo"}, train_in_join);
  CHECK_THAT(report, IsOk());
  CHECK(report.ops == 4 * (6 * 2 + 1));  // six iterations and the count that ends them
}
