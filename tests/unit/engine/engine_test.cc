// How runs end when programs throw, hang, and do things that no program should: every rank is ended, and the report
// shows where it was.
//
// Nothing is checked inside a rank; see simulate_test.cc.

#include <stdexcept>
#include <string>
#include <vector>

#include "sim/dist.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"

namespace rollcall::sim::engine_test {
namespace {

using State = RankClass::State;

Options gloo(Rank world_size) { return {.world_size = world_size, .backend = "gloo"}; }

std::string word(const Report& report) { return std::string(verdict_word(report.verdict)); }

const Finding& finding(const Report& report) {
  REQUIRE(finding_of(report.verdict) != nullptr);
  return *finding_of(report.verdict);
}

Tensor number(double value) { return Tensor::full({1}, value); }

}  // namespace

// ---- Exceptions ----

TEST_CASE("what a rank throws becomes its state, never an exception out of run", "[engine][fiber]") {
  const Report report = run(gloo(4), [](Rank rank) {
    switch (rank) {
      case 0:
        throw ValueError("bad sample");
      case 1:
        throw std::out_of_range("index 7");
      case 2:
        throw 42;
      default:
        return;
    }
  });
  CHECK(word(report) == "rank_failed");
  CHECK(to_string(finding(report).culprits) == "0-2");
  CHECK(report.of(0).exception == "ValueError: bad sample");
  CHECK(report.of(1).exception == "std::exception: index 7");
  CHECK(report.of(2).exception == "exception: of a type that is not a std::exception");
  CHECK(report.of(3).state == State::finished);
}

TEST_CASE("ranks that wait inside a catch clause rethrow their own exception", "[engine][fiber]") {
  const Report report = run(gloo(3), [](Rank rank) {
    try {
      throw ValueError("mine " + std::to_string(rank));
    } catch (const Error&) {
      compute(microsecond * (3 - rank));
      barrier();
      throw;
    }
  });
  for (Rank rank = 0; rank < 3; ++rank) {
    CHECK(report.of(rank).exception == "ValueError: mine " + std::to_string(rank));
  }
}

TEST_CASE("a rank that raised is what the others wait for", "[engine][fiber]") {
  const Report report = run(gloo(3), [](Rank rank) {
    if (rank == 1) {
      throw ValueError("bad sample");
    }
    barrier();
  });
  CHECK(word(report) == "deadlock");
  CHECK(finding(report).kind == FindingKind::rank_crashed);
  CHECK(to_string(finding(report).culprits) == "1");
}

// ---- The end of a hang ----

namespace {

struct Counts {
  ~Counts() { ++*count; }
  int* count;
};

}  // namespace

TEST_CASE("destructors of ranks that hang run", "[engine][fiber]") {
  int destroyed = 0;
  const Report report = run(gloo(5), [&](Rank rank) {
    const Counts counts{&destroyed};
    if (rank > 0) {
      barrier();
    }
  });
  CHECK(word(report) == "deadlock");
  CHECK(destroyed == 5);
}

TEST_CASE("catch clauses for std::exception do not see the end of a hang", "[engine][fiber]") {
  int seen = 0;
  const Report report = run(gloo(2), [&](Rank rank) {
    try {
      if (rank == 1) {
        barrier();
      }
    } catch (const std::exception&) {
      ++seen;
    }
  });
  CHECK(seen == 0);
  CHECK(report.of(1).state == State::waiting);
}

TEST_CASE("a rank that swallows everything still ends, in the state it hung in", "[engine][fiber]") {
  int swallowed = 0;
  const Report report = run(gloo(2), [&](Rank rank) {
    for (int i = 0; rank == 1 && i < 5; ++i) {
      try {
        barrier();
      } catch (...) {
        ++swallowed;
      }
    }
    print("rank " + std::to_string(rank) + " ends");
  });
  CHECK(word(report) == "deadlock");
  CHECK(swallowed == 5);
  CHECK(report.of(1).state == State::waiting);
  CHECK(report.of(1).call->seq == 0);
}

TEST_CASE("what a rank prints after it hung is not part of the run", "[engine][fiber]") {
  const Report report = run(gloo(2), [&](Rank rank) {
    if (rank == 1) {
      try {
        barrier();
      } catch (...) {
        print("gave up");
        throw;
      }
    }
    print("done");
  });
  REQUIRE(report.output.size() == 1);
  CHECK(report.output[0].rank == 0);
}

namespace {

// A careful program might do this: synchronize when leaving a scope.
struct BarrierOnExit {
  ~BarrierOnExit() {
    barrier();
    compute(microsecond);
    print("past the barrier");
  }
};

}  // namespace

TEST_CASE("a destructor that communicates while its rank is ended does nothing", "[engine][fiber]") {
  const Report report = run(gloo(2), [](Rank rank) {
    if (rank == 1) {
      const BarrierOnExit on_exit;
      all_reduce(number(1));
    }
  });
  CHECK(word(report) == "deadlock");
  CHECK(report.of(1).call->op == "all_reduce");
  CHECK(report.output.empty());
  CHECK(report.ops == 1);
}

TEST_CASE("a rank that hangs in a destructor ends, if the destructor may throw", "[engine][fiber]") {
  struct Synchronizes {
    ~Synchronizes() noexcept(false) { barrier(); }
  };
  const Report report = run(gloo(2), [](Rank rank) {
    if (rank == 1) {
      const Synchronizes on_exit;
    }
  });
  CHECK(word(report) == "deadlock");
  CHECK(report.of(1).call->op == "barrier");
}

TEST_CASE("a rank that hangs in a destructor while it unwinds ends", "[engine][fiber]") {
  const Report report = run(gloo(2), [](Rank rank) {
    if (rank == 1) {
      const BarrierOnExit on_exit;
      throw ValueError("bad sample");
    }
  });
  CHECK(word(report) == "deadlock");
  CHECK(report.of(1).state == State::waiting);
  CHECK(report.of(1).call->op == "barrier");
}

TEST_CASE("ranks that compute when a limit strikes are ended too", "[engine][fiber]") {
  int destroyed = 0;
  Options options = gloo(3);
  options.limits.simulated_time = millisecond;
  const Report report = run(options, [&](Rank rank) {
    const Counts counts{&destroyed};
    if (rank == 0) {
      compute(second);
    }
    barrier();
  });
  CHECK(word(report) == "limit_reached");
  CHECK(kind_of(report.verdict) == FindingKind::simulated_time);
  CHECK(report.simulated_time == millisecond);
  CHECK(destroyed == 3);
  CHECK(report.of(0).state == State::running);
  CHECK(report.of(1).state == State::waiting);
}

TEST_CASE("an endless program ends in a verdict", "[engine][fiber]") {
  Options options = gloo(2);
  options.limits.ops = 1000;
  const Report report = run(options, [](Rank) {
    while (true) {
      barrier();
    }
  });
  CHECK(word(report) == "limit_reached");
  CHECK(kind_of(report.verdict) == FindingKind::ops);
  CHECK(report.ops <= 1000);
}

TEST_CASE("an endless loop of asynchronous calls ends as well", "[engine][fiber]") {
  Options options = gloo(1);
  options.limits.ops = 1000;
  const Report report = run(options, [](Rank) {
    while (true) {
      all_reduce(number(1), {.async_op = true});
    }
  });
  CHECK(word(report) == "limit_reached");
}

// ---- How the real job would notice ----

TEST_CASE("with a timeout the waiting ranks raise, and the verdict stays", "[engine][fiber]") {
  Options options = gloo(2);
  options.timeout = 60 * second;
  const Report report = run(options, [](Rank rank) {
    if (rank == 1) {
      barrier();
    }
  });
  CHECK(word(report) == "deadlock");
  CHECK(report.of(1).state == State::raised);
  CHECK_THAT(report.of(1).exception, Contains("Timed out waiting 60000ms"));
  CHECK(report.simulated_time == 60 * second);
}

TEST_CASE("after a timeout the group is unusable, and retrying cannot spin", "[engine][fiber]") {
  Options options = gloo(2);
  options.timeout = second;
  int failures = 0;
  const Report report = run(options, [&](Rank rank) {
    for (int i = 0; rank == 1 && i < 3; ++i) {
      try {
        barrier();
      } catch (const RuntimeError&) {
        ++failures;
      }
    }
  });
  CHECK(failures == 3);
  CHECK(word(report) == "deadlock");
  CHECK(report.of(1).state == State::finished);
}

TEST_CASE("a rank that lost its peer may drop its tensor, whatever the others still do", "[engine][fiber]") {
  // Rank 1 leaves with a call in flight. Rank 0 waits in it for rank 2, which waits for rank 0 elsewhere. Rank 0 gives
  // up and continues; rank 2 then completes the call that rank 0 left.
  Options options = gloo(3);
  options.groups = {{"pair", {0, 2}}};
  options.finished_ranks_exit = true;
  double bystander = 0;
  const Report report = run(options, [&](Rank rank) {
    if (rank == 1) {
      all_reduce(number(1), {.async_op = true});
      return;
    }
    const ProcessGroup pair = find_group("pair");
    if (rank == 2) {
      barrier({.group = pair});
      all_reduce(number(1));
      return;
    }
    try {
      all_reduce(number(1));
    } catch (const RuntimeError&) {
    }
    const Tensor other = number(7);  // likely to get the storage that was freed
    barrier({.group = pair});
    compute(second);
    bystander = other.item();
  });
  CHECK(word(report) == "deadlock");
  CHECK(bystander == 7);
}

}  // namespace rollcall::sim::engine_test
