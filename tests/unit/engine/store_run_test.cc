// The store as a user of sim::run sees it.
//
// As in simulate_test.cc, nothing is checked inside a rank.

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/unit/engine/job.h"
#include "viz/json/json_report.h"

namespace rollcall::sim::store_run_test {

TEST_CASE("a key that one rank sets reaches those that wait for it", "[store][fiber]") {
  std::vector<std::string> got(3);
  std::int64_t count = 0;
  const Report report = run(gloo(3), [&](Rank rank) {
    const Store store;
    if (rank == 2) {
      compute(5 * millisecond);
      store.set("ready", "yes");
    }
    got[static_cast<std::size_t>(rank)] = store.get("ready");
    store.add("count", rank);
    barrier();
    count = store.add("count", 0);
  });
  CHECK(kind(report) == "ok");
  CHECK(got == std::vector<std::string>(3, "yes"));
  CHECK(count == 3);
}

TEST_CASE("a run may begin with keys in its store", "[store][fiber]") {
  Options options = gloo(2);
  options.store.apply({.kind = StoreCall::Kind::set, .keys = {"ready"}, .value = "yes"});
  std::vector<std::string> got(2);
  CHECK(kind(run(options, [&](Rank rank) { got[static_cast<std::size_t>(rank)] = Store().get("ready"); })) ==
        "ok");
  CHECK(got == std::vector<std::string>(2, "yes"));
}

TEST_CASE("who sets a key first does not depend on who runs first", "[store][fiber]") {
  std::vector<std::string> winners;
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    Options options = gloo(4);
    options.seed = seed;
    run(options, [&](Rank rank) {
      const std::string winner = Store("election", Store()).compare_set("leader", "", std::to_string(rank));
      if (rank == 3) {
        winners.push_back(winner);
      }
    });
  }
  CHECK(winners == std::vector<std::string>(4, "0"));
}

TEST_CASE("a key that nobody sets is a deadlock that names the key", "[store][fiber]") {
  const Report everybody = run(nccl(2), [](Rank) { Store().get("server_up"); });
  CHECK(kind(everybody) == "deadlock store_never_served");
  CHECK(culprits(everybody) == "0-1");
  CHECK(finding(everybody).headline == "no rank sets key server_up, which ranks 0-1 wait for");
  CHECK_THAT(viz::json_report(everybody), Contains("\"key\": \"server_up\""));

  const Report gone = run(nccl(3), [](Rank rank) {
    if (rank != 0) {
      Store().wait({"a", "b"});
    }
  });
  CHECK(kind(gone) == "deadlock store_never_served");
  CHECK(culprits(gone) == "0");
  CHECK(gone.of(1).call->key == "a, b");
}

TEST_CASE("a rank that waits in the store between others' calls is the culprit", "[store][fiber]") {
  const Report report = run(nccl(4), [](Rank rank) {
    if (rank == 3) {
      Store().get("done0");
      barrier();
      return;
    }
    barrier();
    Store().set("done" + std::to_string(rank), "1");
  });
  CHECK(kind(report) == "deadlock store_cycle");
  CHECK(culprits(report) == "3");
  CHECK_FALSE(finding(report).tie);
}

// Every rank says that it is ready, with a key of its own; rank 0 waits for all of them.
Report gather_by_keys(const std::string& before, const std::string& after, Rank silent) {
  return run(gloo(4), [&](Rank rank) {
    const Store store;
    if (rank != silent) {
      store.set(before + std::to_string(rank) + after, "1");
    }
    if (rank == 0) {
      std::vector<std::string> keys;
      for (int i = 0; i < 4; ++i) {
        keys.push_back(before + std::to_string(i) + after);
      }
      store.wait(keys);
    }
    barrier();
  });
}

TEST_CASE("the rank whose number is in a missing key is the culprit, if others have set theirs",
          "[store][fiber]") {
  for (const auto& [before, after] : {std::pair("ready", ""), std::pair("step10/rank", "/done")}) {
    const Report report = gather_by_keys(before, after, 2);
    CHECK(kind(report) == "deadlock store_never_served");
    CHECK(culprits(report) == "2");
    CHECK_FALSE(finding(report).tie);
    CHECK_THAT(finding(report).headline,
               StartsWith("rank 2 did not set key ") && EndsWith(", which rank 0 waits for"));
  }
}

TEST_CASE("a key with a number is no rank's own if another has set such a key, or if it may be a count",
          "[store][fiber]") {
  const Report by_another = run(gloo(4), [](Rank rank) {
    const Store store;
    if (rank == 1) {
      store.set("part0", "1");
      store.set("part1", "1");
    }
    if (rank == 3) {
      store.get("part2");
    }
    barrier();
  });
  CHECK(culprits(by_another) == "3");
  const Report count = run(gloo(4), [](Rank rank) {
    if (rank == 0) {
      Store().set("epoch0", "1");
    }
    if (rank == 3) {
      Store().wait({"epoch0", "epoch1"});
    }
    barrier();
  });
  CHECK(culprits(count) == "3");
}

TEST_CASE("a message and a key that wait for each other blame both ends", "[store][fiber]") {
  const Report report = run(gloo(2), [](Rank rank) {
    if (rank == 0) {
      send(one(), 1);
      Store().set("request", "1");
    } else {
      Store().get("request");
      recv(one(), 0);
    }
  });
  CHECK(kind(report) == "deadlock store_cycle");
  CHECK(culprits(report) == "0-1");
  CHECK(finding(report).tie);
}

TEST_CASE("a stale key is a wrong result on the rank that relies on it", "[store][fiber]") {
  const Report report = run(nccl(2), [](Rank rank) {
    const Store store;
    if (rank == 0) {
      store.set("id", "gen1");
      barrier();
      store.get("restarted");
      store.set("id", "gen2");
    } else {
      barrier();
      store.get("id", "gen2");
      store.set("restarted", "1");
    }
  });
  CHECK(kind(report) == "wrong_result stale_key");
  CHECK(culprits(report) == "1");
  CHECK(finding(report).headline == "rank 1 reads \"gen1\" from key id, but expects \"gen2\"");
}

TEST_CASE("a wait in the store with a limit is no deadlock", "[store][fiber]") {
  int tries = 0;
  const Report report = run(gloo(2), [&](Rank rank) {
    const Store store;
    if (rank == 1) {
      store.get("go");
      return;
    }
    for (tries = 1; tries < 4; ++tries) {
      try {
        store.wait({"never"}, second);
      } catch (const RuntimeError&) {
        continue;
      }
    }
    store.set("go", "1");
  });
  CHECK(kind(report) == "ok");
  CHECK(tries == 4);
  CHECK(report.simulated_time > 3 * second);
  CHECK(report.simulated_time < 4 * second);
}

}  // namespace rollcall::sim::store_run_test
