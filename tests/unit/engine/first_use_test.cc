// Communicators that nccl creates at their first use, as a user of sim::run sees them.
//
// As in simulate_test.cc, nothing is checked inside a rank.

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/unit/engine/job.h"

namespace rollcall::sim::first_use_test {
namespace {
using Body = std::function<void(Rank)>;

constexpr Rank nobody = -1;

// Sends a number to `to` and receives one from `from`, in one batch.
void exchange(Rank to, Rank from, const PointToPointOptions& options = {}) {
  std::vector<PointToPoint> batch;
  if (to != nobody) {
    batch.push_back({OpKind::send, one(), to, options});
  }
  if (from != nobody) {
    batch.push_back({OpKind::recv, one(), from, options});
  }
  for (const Work& work : batch_isend_irecv(batch)) {
    work.wait();
  }
}

// The first two of three ranks exchange, in a batch.
void pass_on(Rank rank) {
  if (rank < 2) {
    exchange(rank == 0 ? 1 : nobody, rank == 1 ? 0 : nobody);
  }
}

// Shifts by one, with both ends outside of batches, and the send first on every rank.
void shift_one_by_one(Rank rank) {
  const Tensor in = one();
  const std::array works{isend(one(), next_of(rank)), irecv(in, previous_of(rank))};
  for (const Work& work : works) {
    work.wait();
  }
}

}  // namespace

TEST_CASE("a batch that is its group's first call waits for members it has no message for",
          "[first_use][fiber]") {
  const Report report = run(nccl(3), pass_on);
  CHECK(kind(report) == "deadlock missing_participant");
  CHECK(culprits(report) == "2");
  CHECK(finding(report).at->call.op == "batch_isend_irecv");
  CHECK(finding(report).at->call.seq == 0);
  CHECK(to_string(finding(report).at->waiting) == "0-1");
  CHECK(finding(report).headline == "rank 2 never made its first call on world (2 of 3 ranks wait)");
  CHECK_THAT(finding(report).cause, Contains("communicator is created by all members"));
  CHECK_THAT(finding(report).advice, Contains("device_id"));
  CHECK_THAT(finding(report).on_backend, Contains("ncclCommInitRank"));
}

TEST_CASE("gloo, and nccl with a device_id, have connections before the first call", "[first_use][fiber]") {
  CHECK(kind(run(gloo(3), pass_on)) == "ok");
  CHECK(kind(nccl_job.run_eagerly(3, pass_on)) == "ok");
}

TEST_CASE("any member's first call makes the communicator, whichever came first", "[first_use][fiber]") {
  const std::array<Body, 4> firsts{[](Rank) { barrier(); },  // before the batch
                                   [](Rank rank) { all_reduce(one(), {.async_op = rank == 2}); },
                                   [](Rank rank) {
                                     if (rank == 2) {
                                       exchange(nobody, nobody);               // an empty batch is not a call
                                       all_reduce(one(), {.async_op = true});  // no other rank makes it
                                     }
                                   },
                                   [](Rank rank) {
                                     if (rank == 2) {
                                       compute(second);
                                       all_reduce(one(), {.async_op = true});  // long after the batch
                                     }
                                   }};
  for (const Body& first : firsts) {
    const Report report = run(nccl(3), [&](Rank rank) {
      first(rank);
      pass_on(rank);
    });
    CHECK(word(report) != "deadlock");
  }
}

TEST_CASE("a message in no batch does not make the communicator of its group", "[first_use][fiber]") {
  const Report report = run(nccl(3), [](Rank rank) {
    if (rank == 2) {
      send(one(), 0);
    } else if (rank == 0) {
      recv(one(), 2);
    }
    pass_on(rank);
  });
  CHECK(kind(report) == "deadlock missing_participant");
  CHECK(culprits(report) == "2");
}

TEST_CASE("every group has a communicator of its own", "[first_use][fiber]") {
  const auto in_group = [](ProcessGroup (*make)()) {
    return run(nccl(3), [=](Rank rank) {
      barrier();
      const ProcessGroup group = make();
      if (rank < 2) {
        exchange(rank == 0 ? 1 : nobody, rank == 1 ? 0 : nobody, {.group = group});
      }
    });
  };
  const Report all = in_group([] { return new_group(RankList{0, 1, 2}); });
  CHECK(kind(all) == "deadlock missing_participant");
  CHECK(finding(all).at->call.group == "g1");
  CHECK(kind(in_group([] { return new_group(RankList{0, 1}); })) == "ok");
}

TEST_CASE("a member that waits in another call closes a cycle", "[first_use][fiber]") {
  const Report report = run(nccl(3), [](Rank rank) {
    if (rank == 2) {
      recv(one(), 0);
    }
    pass_on(rank);
    if (rank == 0) {
      send(one(), 2);
    }
  });
  CHECK(kind(report) == "deadlock order_crossing");
  CHECK(culprits(report) == "0,2");
  CHECK_THAT(finding(report).cause, Contains("every member has to make the first call on world"));
}

TEST_CASE("a first collective holds up its host until every member has made a first call",
          "[first_use][fiber]") {
  const auto reduce_and_report = [](Rank rank) {
    if (rank == 0) {
      all_reduce(one(), {.async_op = true});
      print("reduces");
    } else {
      Store().wait({"never"});
    }
  };
  CHECK(run(nccl(2), reduce_and_report).output.empty());
  CHECK(nccl_job.run_eagerly(2, reduce_and_report).output.size() == 1);
}

TEST_CASE("crossed collectives of two groups are a deadlock if they are the first", "[first_use][fiber]") {
  const auto cross = [](bool are_connected, const GroupOptions& options = {}) {
    return [=](Rank rank) {
      const std::array groups{new_group(RankList{0, 1}, options), new_group(RankList{0, 1}, options)};
      for (const ProcessGroup& group : groups) {
        if (are_connected) {
          all_reduce(one(), {.group = group});
        }
      }
      const Work first = all_reduce(one(), {.group = groups[rank == 0 ? 0 : 1], .async_op = true});
      all_reduce(one(), {.group = groups[rank == 0 ? 1 : 0], .async_op = true}).wait();
      first.wait();
    };
  };
  const Report report = run(nccl(2), cross(false));
  CHECK(kind(report) == "deadlock order_crossing");
  CHECK(culprits(report) == "0-1");
  CHECK_THAT(finding(report).on_backend, Contains("ncclCommInitRank"));
  CHECK(kind(run(nccl(2), cross(true))) == "ok");
  CHECK(kind(run(nccl(2), cross(false, {.is_on_gloo = true}))) == "ok");
  CHECK(kind(nccl_job.run_eagerly(2, cross(false))) == "ok");
  CHECK(kind(run(gloo(2), cross(false))) == "ok");
}

TEST_CASE("a first message in no batch holds up its host until the other rank comes", "[first_use][fiber]") {
  const auto send_and_report = [](Rank rank) {
    if (rank == 0) {
      isend(one(), 1);
      print("sent");
    } else {
      compute(second);
      Store().wait({"never"});
    }
  };
  const Report report = run(nccl(2), send_and_report);
  CHECK(report.output.empty());
  CHECK(word(report) == "deadlock");
  REQUIRE(nccl_job.run_eagerly(2, send_and_report).output.size() == 1);
  REQUIRE(run(gloo(2), send_and_report).output.size() == 1);
}

TEST_CASE("first messages in a ring wait for each other, later ones do not", "[first_use][fiber]") {
  CHECK(kind(run(nccl(3), shift_one_by_one)) == "deadlock send_send");
  CHECK(kind(nccl_job.run_eagerly(3, shift_one_by_one)) == "ok");
  const Report report = run(nccl(3), [](Rank rank) {
    for (Rank sender = 0; sender < 3; ++sender) {  // pair by pair
      if (rank == sender) {
        send(one(), next_of(rank));
      } else if (previous_of(rank) == sender) {
        recv(one(), sender);
      }
    }
    shift_one_by_one(rank);
  });
  CHECK(kind(report) == "ok");
}

TEST_CASE("a message in a batch never meets one that is in none", "[first_use][fiber]") {
  const auto mixed = [](Rank rank) {
    barrier();
    if (rank == 0) {
      send(one(), 1);
    } else {
      exchange(nobody, 0);
    }
  };
  const Report report = run(nccl(2), mixed);
  CHECK(kind(report) == "deadlock p2p_order");
  CHECK_THAT(finding(report).cause, Contains("one message is in a batch_isend_irecv and the other is not"));
  CHECK(kind(nccl_job.run_eagerly(2, mixed)) == "ok");
  CHECK(kind(run(gloo(2), mixed)) == "ok");
}

TEST_CASE("a rank that dies before its first call is named", "[first_use][fiber]") {
  const Report report = run(nccl(3), [](Rank rank) {
    if (rank == 2) {
      throw Error("ValueError", "bad sample");
    }
    pass_on(rank);
  });
  CHECK(kind(report) == "deadlock rank_crashed");
  CHECK(culprits(report) == "2");
}

TEST_CASE("a first call that comes after the others' patience is late, and not missing",
          "[first_use][fiber]") {
  Options options = nccl(3);
  options.timeout = 10 * second;
  const Report report = run(options, [](Rank rank) {
    if (rank == 2) {
      compute(20 * second);
      barrier();
    }
    pass_on(rank);
  });
  CHECK(kind(report) == "race watchdog_timeout");
  CHECK(culprits(report) == "2");
}

TEST_CASE("a rank that comes when its peer's limit is over is in time for the comparison of DETAIL",
          "[first_use][fiber]") {
  Options options = nccl(2);
  options.timeout = 20 * millisecond;
  options.debug = DebugLevel::detail;
  const Report report = run(options, [](Rank rank) {
    compute((rank == 0 ? 10 : 30) * millisecond);
    all_reduce(one());
    barrier();
  });
  CHECK(kind(report) == "ok");
}

TEST_CASE("making communicators takes no time, and does not depend on who runs first", "[first_use][fiber]") {
  const auto ring = [](Rank rank) { exchange(next_of(rank), previous_of(rank)); };
  const Time eager = nccl_job.run_eagerly(8, ring).simulated_time;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    Options options = nccl(8);
    options.seed = seed;
    const Report report = run(options, ring);
    CHECK(kind(report) == "ok");
    CHECK(report.simulated_time == eager);
  }
}

}  // namespace rollcall::sim::first_use_test
