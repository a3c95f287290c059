// PyTorch's own tests of Join, by their names: class TestJoin in test/distributed/algorithms/test_join.py. Four ranks;
// rank r has 3 + r inputs, or all have 3.

#include <deque>
#include <string>
#include <vector>

#include "sim/dist.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"

namespace rollcall::golden::upstream_join_test {

namespace {

constexpr Rank ranks = 4;
constexpr std::int64_t base_inputs = 3;

// The suite's joinable: each call sums a one over all ranks, num_allreduces times. With run_post_hooks, its post_hook
// broadcasts the last joiner's number.
class AllReducer final : public Joinable {
 public:
  static constexpr double before = 41;
  static constexpr double after = 42;

  double operator()(std::int64_t times) {
    Join::notify_join_context(*this);
    double total = 0;
    for (std::int64_t i = 0; i < times; ++i) {
      const Tensor one = Tensor::ones({1});
      all_reduce(one);
      total += one.item();
    }
    return total;
  }

  std::unique_ptr<JoinHook> join_hook(const Kwargs& kwargs) override {
    return std::make_unique<Hook>(*this, get_or<std::int64_t>(kwargs, "num_allreduces", 1),
                                  get_or(kwargs, "run_post_hooks", false));
  }
  Device join_device() const override { return cpu_device; }
  ProcessGroup join_process_group() const override { return world(); }

  double post_hook_value() const { return post_hook_tensor_.item(); }

 private:
  class Hook final : public JoinHook {
   public:
    Hook(AllReducer& owner, std::int64_t times, bool runs_post_hook)
        : owner_(owner), times_(times), runs_post_hook_(runs_post_hook) {}

    void main_hook() override {
      for (std::int64_t i = 0; i < times_; ++i) {
        all_reduce(Tensor::zeros({1}));
      }
    }
    void post_hook(bool is_last_joiner) override {
      if (runs_post_hook_) {
        owner_.take_from_last_joiner(is_last_joiner);
      }
    }

   private:
    AllReducer& owner_;
    std::int64_t times_;
    bool runs_post_hook_;
  };

  void take_from_last_joiner(bool is_last_joiner) {
    const Tensor rank = Tensor::integer(is_last_joiner ? get_rank() : -1);
    all_reduce(rank, {.op = ReduceOp::max});
    const auto chosen = static_cast<Rank>(rank.item_integer());
    if (chosen == get_rank()) {
      post_hook_tensor_.fill_(after);
    }
    broadcast(post_hook_tensor_, chosen);
  }

  Tensor post_hook_tensor_ = Tensor::full({1}, before);
};

struct Setup {
  std::size_t joinables = 1;
  bool uneven = true;
  bool enable = true;
  bool throws = false;
  std::int64_t allreduces = 1;
  bool post_hooks = false;
};

// What one rank found.
struct Found {
  double total = 0;
  std::vector<double> post_hook_values;
  std::string error;
};

Found train(const Setup& setup, Rank rank) {
  Found found;
  std::deque<AllReducer> reducers(setup.joinables);  // joinables stay where they are
  const std::vector<std::reference_wrapper<Joinable>> list(reducers.begin(), reducers.end());
  const Kwargs kwargs{{"num_allreduces", setup.allreduces}, {"run_post_hooks", setup.post_hooks}};
  try {
    Join(Joinables(list),
         {.enable = setup.enable, .throw_on_early_termination = setup.throws, .kwargs = kwargs})
        .run([&] {
          for (std::int64_t i = 0; i < base_inputs + (setup.uneven ? rank : 0); ++i) {
            for (AllReducer& reducer : reducers) {
              found.total += reducer(setup.allreduces);
            }
          }
        });
  } catch (const RuntimeError& error) {
    found.error = error.what();
  }
  for (const AllReducer& reducer : reducers) {
    found.post_hook_values.push_back(reducer.post_hook_value());
  }
  return found;
}

std::vector<Found> run(const Setup& setup) {
  std::vector<Found> found(ranks);
  const Report report = sim::run({.world_size = ranks, .backend = "gloo"}, [&](Rank rank) {
    found[static_cast<std::size_t>(rank)] = train(setup, rank);
  });
  CHECK(verdict_word(report.verdict) == "ok");
  return found;
}

// All ranks take part in the first three iterations, one rank fewer in each that follows.
double uneven_total(Rank rank) {
  double total = static_cast<double>(base_inputs) * ranks;
  for (Rank gone = 1; gone <= rank; ++gone) {
    total += ranks - gone;
  }
  return total;
}

void check_totals(const Setup& setup) {
  const std::vector<Found> found = run(setup);
  const double factor = static_cast<double>(setup.joinables) * static_cast<double>(setup.allreduces);
  for (Rank rank = 0; rank < ranks; ++rank) {
    const Found& mine = found[static_cast<std::size_t>(rank)];
    CHECK(mine.total ==
          factor * (setup.uneven ? uneven_total(rank) : static_cast<double>(base_inputs) * ranks));
    CHECK(mine.error.empty());
    const double expected = setup.post_hooks ? AllReducer::after : AllReducer::before;
    CHECK(mine.post_hook_values == std::vector<double>(setup.joinables, expected));
  }
}

void check_throws(std::size_t joinables) {
  const std::vector<Found> found = run({.joinables = joinables, .throws = true});
  CHECK(found.front().error == "Rank 0 exhausted all inputs.");
  for (std::size_t rank = 1; rank < found.size(); ++rank) {
    CHECK(found[rank].error ==
          "Detected at least one rank that exhausted inputs. Throwing across all ranks.");
  }
}

}  // namespace

TEST_CASE("main hooks shadow a joinable's calls (test_single_joinable_main_hooks)", "[fiber][conformance]") {
  check_totals({});
}

TEST_CASE("post hooks run where nothing is to be shadowed (test_single_joinable_post_hooks)",
          "[fiber][conformance]") {
  check_totals({.allreduces = 0, .post_hooks = true});
}

TEST_CASE("main hooks and post hooks work together (test_single_joinable)", "[fiber][conformance]") {
  check_totals({.post_hooks = true});
}

TEST_CASE("several joinables share one context (test_multiple_joinables)", "[fiber][conformance]") {
  check_totals({.joinables = 3, .post_hooks = true});
}

TEST_CASE("a disabled context leaves a joinable alone (test_single_joinable_disable)",
          "[fiber][conformance]") {
  check_totals({.uneven = false, .enable = false});
}

TEST_CASE("a disabled context leaves several joinables alone (test_multiple_joinable_disable)",
          "[fiber][conformance]") {
  check_totals({.joinables = 3, .uneven = false, .enable = false});
}

TEST_CASE("the first rank without inputs ends all (test_single_joinable_throw)", "[fiber][conformance]") {
  check_throws(1);
}

TEST_CASE("the first rank without inputs ends all joinables (test_multiple_joinables_throw)",
          "[fiber][conformance]") {
  check_throws(3);
}

TEST_CASE("keyword arguments reach the hook (test_join_kwargs)", "[fiber][conformance]") {
  check_totals({.allreduces = 2});
}

}  // namespace rollcall::golden::upstream_join_test
