// Time limits: ranks that come late, groups with their own limits, monitored barriers.
//
// As in simulate_test.cc, nothing is checked inside a rank.

#include <string>

#include "tests/catch.h"
#include "tests/unit/engine/job.h"

namespace rollcall::sim::limits_test {

TEST_CASE("a rank that comes later than the others wait is a race, and nobody is missing",
          "[timeout][fiber]") {
  for (Options options : {gloo(4), nccl(4)}) {
    options.timeout = 1800 * second;
    const Report report = run(options, [](Rank rank) {
      if (rank == 0) {
        compute(2700 * second);
      }
      barrier();
    });
    CHECK(kind(report) == "race watchdog_timeout");
    CHECK(culprits(report) == "0");
    CHECK(to_string(finding(report).at->waiting) == "1-3");
    CHECK(finding(report).cause ==
          "no rank is missing: rank 0 arrives after 45 min, and the limit of the barrier" +
              finding(report).cause.substr(finding(report).cause.find(" at ")));
  }
}

// Measured on torch 1.13 with a limit of 2 s: a rank waited 2.19 s in an all_reduce of 400 MB to which the other one
// came after 1.7 s, and 3.37 s in a reduce of 600 MB. A broadcast of 1.6 GB, which is one message, failed.
TEST_CASE("a call to which all have come in time does not fail because it takes a moment more",
          "[timeout][fiber]") {
  const auto late_by = [](Duration more) {
    Options options = gloo(2);
    options.timeout = 20 * millisecond;
    return run(options, [more](Rank rank) {
      compute(rank == 0 ? 10 * millisecond : 30 * millisecond + more);
      all_reduce(one());
    });
  };
  CHECK(kind(late_by(-microsecond)) == "ok");
  CHECK(kind(late_by(0)) == "ok");
  CHECK(kind(late_by(microsecond)) == "race watchdog_timeout");
}

TEST_CASE("a message whose other end comes too late is a race, and not missing", "[timeout][fiber]") {
  const auto late_by = [](Options options, Duration more, bool sends) {
    options.timeout = 20 * millisecond;
    return run(options, [more, sends](Rank rank) {
      compute(rank == 0 ? 10 * millisecond : 30 * millisecond + more);
      if ((rank == 1) == sends) {
        send(one(), 1 - rank);
      } else {
        recv(one(), 1 - rank);
      }
    });
  };
  for (const bool sends : {false, true}) {
    for (const Options& options : {gloo(2), nccl(2)}) {
      const Report report = late_by(options, millisecond, sends);
      CHECK(kind(report) == "race watchdog_timeout");
      CHECK(culprits(report) == "1");
      CHECK_THAT(finding(report).headline,
                 Contains(sends ? "rank 1 sends to rank 0 after" : "rank 1 receives from rank 0 after"));
      CHECK_THAT(finding(report).cause, Contains("after 31 ms, and the limit of the"));
    }
    CHECK(kind(late_by(gloo(2), 0, sends)) == "ok");
  }
}

TEST_CASE("ranks that give up while they wait for each other are a deadlock, although others still work",
          "[timeout][fiber]") {
  Options options = gloo(4);
  options.timeout = second;
  for (const bool others_wait : {false, true}) {
    const Report report = run(options, [others_wait](Rank rank) {
      if (rank < 2) {
        recv(one(), 1 - rank);
      }
      if (rank == 3 && others_wait) {
        recv(one(), 2);
      }
      compute(3 * second);
      if (rank == 2 && others_wait) {
        send(one(), 3);
      }
      barrier();
    });
    CHECK(kind(report) == "deadlock recv_recv");
    CHECK(culprits(report) == "0-1");
  }
}

TEST_CASE("a group's own timeout is kept, and the world's is not touched", "[timeout][fiber]") {
  std::string error;
  const Report report = run(gloo(2), [&](Rank rank) {
    const ProcessGroup hasty = new_group({}, {.timeout = 2 * second});
    if (rank == 1) {
      compute(5 * second);
    }
    try {
      all_reduce(one(), {.group = hasty});
    } catch (const RuntimeError&) {
      error += std::to_string(rank);
    }
    barrier();
  });
  CHECK(error == "01");
  CHECK(kind(report) == "ok");  // the program was prepared for it
}

TEST_CASE("a rank that never comes before the timeout is missing, not late", "[timeout][fiber]") {
  Options options = gloo(3);
  options.timeout = second;
  const Report report = run(options, [](Rank rank) {
    if (rank == 2) {
      compute(5 * second);
      return;
    }
    all_reduce(one());
  });
  CHECK(kind(report) == "deadlock missing_participant");
  CHECK(culprits(report) == "2");
}

TEST_CASE("a monitored barrier names who is missing", "[timeout][fiber]") {
  std::string text;
  const Report report = run(gloo(4), [&](Rank rank) {
    if (rank == 1 || rank == 3) {
      return;
    }
    try {
      monitored_barrier({.timeout = 2 * second, .wait_all_ranks = true});
    } catch (const RuntimeError& error) {
      if (rank == 0) {
        text = error.what();
      }
      throw;
    }
  });
  CHECK(text == "[Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 2000 ms");
  CHECK(kind(report) == "deadlock missing_participant");
  CHECK(culprits(report) == "1,3");
  CHECK(report.simulated_time == 2 * second);
}

TEST_CASE("a monitored barrier is of gloo alone", "[timeout][fiber]") {
  const Report report = run(nccl(2), [](Rank) { monitored_barrier(); });
  CHECK(std::get<RankFailed>(report.verdict).exception ==
        "ValueError: monitored_barrier is only implemented for GLOO backend.");
}

TEST_CASE("a monitored barrier takes its number among the group's collectives", "[timeout][fiber]") {
  const Report report = run(gloo(2), [](Rank rank) {
    if (rank == 0) {
      monitored_barrier();
    }
    all_reduce(one());
  });
  CHECK(kind(report) == "mismatch op_mismatch");
}

}  // namespace rollcall::sim::limits_test
