// Groups, the store and limits of time as a user of sim::run sees them.
//
// As in simulate_test.cc, nothing is checked inside a rank.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "sim/dist.h"
#include "sim/dist/rank_context.h"
#include "sim/engine/simulate.h"
#include "viz/json_report.h"

namespace rollcall::sim {
namespace {

using Catch::Matchers::Contains;
using State = RankClass::State;

Options gloo(Rank world_size) { return {.world_size = world_size, .backend = "gloo"}; }
Options nccl(Rank world_size) { return {.world_size = world_size, .backend = "nccl"}; }

const Finding& finding(const Report& report) {
  REQUIRE(finding_of(report.verdict) != nullptr);
  return *finding_of(report.verdict);
}

std::string kind(const Report& report) {
  const std::string word(verdict_word(report.verdict));
  return word == "ok" ? word : word + " " + finding(report).kind;
}

std::string culprits(const Report& report) { return to_string(finding(report).culprits); }

// Where the rank's tensors live.
Tensor one() { return Tensor::full({1}, 1, Dtype::float32, this_rank().device); }

}  // namespace

// ---- new_group ----

TEST_CASE("a group made at run time reduces among its members", "[groups][fiber]") {
  for (const Options& options : {gloo(4), nccl(4)}) {
    std::vector<double> sums(4);
    std::vector<Rank> ranks(4);
    const Report report = run(options, [&](Rank rank) {
      const ProcessGroup odd = new_group(RankList{3, 1});
      const Tensor tensor = one();
      all_reduce(tensor, {.group = odd});
      sums[static_cast<std::size_t>(rank)] = tensor.item();
      ranks[static_cast<std::size_t>(rank)] = get_rank(odd);
    });
    CHECK(kind(report) == "ok");
    CHECK(sums == std::vector<double>{1, 2, 1, 2});
    CHECK(ranks == std::vector<Rank>{-1, 0, -1, 1});
  }
}

TEST_CASE("groups count their calls apart from each other and from the world", "[groups][fiber]") {
  const Report report = run(gloo(2), [](Rank rank) {
    all_reduce(one());
    const ProcessGroup group = new_group();
    all_reduce(one(), {.group = group});
    if (rank == 0) {
      all_reduce(one(), {.group = group});
    }
  });
  CHECK(kind(report) == "deadlock missing_participant");
  CHECK(call_phrase(finding(report).at->call) == "all_reduce #1 on g1");
}

TEST_CASE("a rank that does not call new_group is the culprit, member or not", "[groups][fiber]") {
  for (const Options& options : {gloo(8), nccl(8)}) {
    const Report report = run(options, [](Rank rank) {
      if (rank < 2) {
        new_group(RankList{0, 1});
      }
    });
    CHECK(kind(report) == "deadlock missing_participant");
    CHECK(culprits(report) == "2-7");
    CHECK(call_phrase(finding(report).at->call) == "new_group #0 on world");
    CHECK(finding(report).at->call.ranks == "0-1");
    CHECK_THAT(finding(report).on_backend, Contains("store based barrier"));
  }
}

TEST_CASE("ranks that make different groups in one call are a mismatch", "[groups][fiber]") {
  for (const Options& options : {gloo(5), nccl(5)}) {
    const Report report = run(options, [](Rank rank) {
      const ProcessGroup group = new_group(rank < 3 ? RankList{0, 1, 2} : RankList{3, 4});
      all_reduce(one(), {.group = group});
    });
    CHECK(kind(report) == "mismatch group_args_mismatch");
    CHECK(culprits(report) == "3-4");
    CHECK(finding(report).headline ==
          "ranks 3-4 call new_group #0 on world for ranks 3-4; ranks 0-2 for ranks 0-2");
  }
}

TEST_CASE("groups made in different orders on different ranks are a mismatch", "[groups][fiber]") {
  const Report report = run(nccl(4), [](Rank rank) {
    const RankList low{0, 1};
    const RankList high{2, 3};
    new_group(rank == 3 ? high : low);
    new_group(rank == 3 ? low : high);
  });
  CHECK(kind(report) == "mismatch group_args_mismatch");
  CHECK(culprits(report) == "3");
  CHECK(finding(report).at->call.seq == 0);
}

TEST_CASE("a rank that raised before new_group is found", "[groups][fiber]") {
  const Report report = run(nccl(3), [](Rank rank) {
    if (rank == 1) {
      throw ValueError("bad sample");
    }
    new_group();
  });
  CHECK(kind(report) == "deadlock rank_crashed");
  CHECK(culprits(report) == "1");
}

TEST_CASE("a collective and a new_group that wait for each other are a circle", "[groups][fiber]") {
  const Report report = run(gloo(2), [](Rank rank) {
    if (rank == 0) {
      barrier();
    }
    new_group();
    if (rank == 1) {
      barrier();
    }
  });
  CHECK(kind(report) == "deadlock order_crossing");
  CHECK(culprits(report) == "0-1");
}

// ---- The other ways to make groups ----

TEST_CASE("new_subgroups makes a group per host unless told otherwise", "[groups][fiber]") {
  Options options = nccl(8);
  options.ranks_per_host = 4;
  std::vector<std::string> members(8);
  std::size_t made = 0;
  const Report report = run(options, [&](Rank rank) {
    const Subgroups hosts = new_subgroups();
    const Subgroups pairs = new_subgroups(2);
    all_reduce(one(), {.group = pairs.current});
    members[static_cast<std::size_t>(rank)] = to_string(RankSet::of(get_process_group_ranks(hosts.current))) +
                                              " " +
                                              to_string(RankSet::of(get_process_group_ranks(pairs.current)));
    made = pairs.all.size();
  });
  CHECK(kind(report) == "ok");
  CHECK(members[5] == "4-7 4-5");
  CHECK(made == 4);
}

TEST_CASE("new_subgroups says what torch says about its arguments", "[groups][fiber]") {
  const auto error_of = [](const Options& options, Rank size) {
    return std::get<RankFailed>(run(options, [size](Rank) { new_subgroups(size); }).verdict).exception;
  };
  CHECK(error_of(gloo(4), 2) == "ValueError: Subgroups can only be created when CUDA is available");
  CHECK(error_of(nccl(3), 2) == "ValueError: The world size must be divisible by 'group_size'");
  CHECK(error_of(nccl(3), 4) == "ValueError: The arg 'group_size' must not exceed the world size");
  const Report twice = run(nccl(3), [](Rank) { new_subgroups_by_enumeration({{0, 1}, {1, 2}}); });
  CHECK(std::get<RankFailed>(twice.verdict).exception ==
        "ValueError: Rank 1 has appeared in both subgroup [0, 1] and [1, 2]");
}

TEST_CASE("split_group takes ranks of the parent and needs all of them", "[groups][fiber]") {
  std::vector<Rank> seen(6, -2);
  const Report report = run(nccl(6), [&](Rank rank) {
    const ProcessGroup upper = new_group(RankList{2, 3, 4, 5});
    if (rank < 2) {
      return;
    }
    const ProcessGroup part = split_group({{0, 1}, {3}}, {.parent = upper});
    if (part.is_member()) {
      all_reduce(one(), {.group = part});
    }
    seen[static_cast<std::size_t>(rank)] = get_rank(part);
  });
  CHECK(kind(report) == "ok");
  CHECK(seen == std::vector<Rank>{-2, -2, 0, 1, -1, 0});

  const Report missing = run(nccl(3), [](Rank rank) {
    if (rank != 2) {
      split_group({{0, 1}});
    }
  });
  CHECK(kind(missing) == "deadlock missing_participant");
  CHECK(culprits(missing) == "2");
  const Report on_gloo = run(gloo(2), [](Rank) { split_group({{0, 1}}); });
  CHECK(kind(on_gloo) == "rank_failed raised");
}

TEST_CASE("a device mesh gives every rank its group in every dimension", "[groups][fiber]") {
  std::vector<std::string> places(4);
  const Report report = run(gloo(4), [&](Rank rank) {
    const DeviceMesh mesh = init_device_mesh({{2, 2}, {"dp", "tp"}});
    all_reduce(one(), {.group = mesh.get_group("dp")});
    places[static_cast<std::size_t>(rank)] = mesh.get_group("dp").name() + " " +
                                             std::to_string(mesh.get_local_rank("tp")) + " " +
                                             std::to_string(mesh.get_coordinate()[0]);
  });
  CHECK(kind(report) == "ok");
  CHECK(places == std::vector<std::string>{"dp0 0 0", "dp1 1 0", "dp0 0 1", "dp1 1 1"});
}

// ---- The end of groups ----

TEST_CASE("destroying a group waits for the others on nccl and not on gloo", "[groups][fiber]") {
  const auto program = [](Rank rank) {
    const ProcessGroup group = new_group();
    if (rank == 1) {
      destroy_process_group(group);
    }
  };
  CHECK(kind(run(gloo(2), program)) == "ok");
  const Report report = run(nccl(2), program);
  CHECK(kind(report) == "deadlock missing_participant");
  CHECK(culprits(report) == "0");
  CHECK(call_phrase(finding(report).at->call) == "destroy_process_group #0 on g1");
}

TEST_CASE("a destroyed group is not there any more", "[groups][fiber]") {
  const Report on_nccl = run(nccl(2), [](Rank) {
    const ProcessGroup group = new_group();
    destroy_process_group(group);
    all_reduce(one(), {.group = group});
  });
  CHECK(kind(on_nccl) == "rank_failed raised");
  CHECK_THAT(std::get<RankFailed>(on_nccl.verdict).exception,
             Contains("NCCL communicator was aborted on rank 0"));
  const Report twice = run(gloo(1), [](Rank) {
    const ProcessGroup group = new_group();
    destroy_process_group(group);
    destroy_process_group(group);
  });
  CHECK(std::get<RankFailed>(twice.verdict).exception == "RuntimeError: Invalid process group specified");
  const Report world = run(gloo(2), [](Rank) {
    destroy_process_group();
    all_reduce(one());
  });
  CHECK_THAT(std::get<RankFailed>(world.verdict).exception, Contains("has not been initialized"));
}

TEST_CASE("groups that nobody destroyed are a leak where that is asked for", "[groups][fiber]") {
  const auto program = [](bool tidy) {
    return [tidy](Rank rank) {
      new_group();
      if (tidy || rank == 0) {
        destroy_process_group();
      }
    };
  };
  Options options = gloo(2);
  CHECK(kind(run(options, program(false))) == "ok");
  options.check_leaks = true;
  const Report report = run(options, program(false));
  CHECK(kind(report) == "resource_leak group_not_destroyed");
  CHECK(culprits(report) == "1");
  CHECK(finding(report).headline == "rank 1 ends without destroying groups world, g1");
  CHECK(kind(run(options, program(true))) == "ok");
}

// ---- The store ----

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
  CHECK(finding(everybody).headline == "nobody sets key server_up, which ranks 0-1 wait for");
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
  CHECK(kind(report) == "deadlock store_circle");
  CHECK(culprits(report) == "3");
  CHECK_FALSE(finding(report).tie);
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
  CHECK(kind(report) == "deadlock store_circle");
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
  CHECK(finding(report).headline == "rank 1 reads \"gen1\" from key id, where it relies on \"gen2\"");
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

// ---- Limits of time ----

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
          "nobody is missing: rank 0 comes after 45 min, and the limit of the barrier" +
              finding(report).cause.substr(finding(report).cause.find(" at ")));
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
  CHECK(kind(report) == "ok");  // the program was prepared
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
        "RuntimeError: monitored_barrier is only implemented for GLOO backend.");
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

TEST_CASE("reports about groups and keys do not depend on the order in which ranks run", "[groups][fiber]") {
  std::vector<std::string> reports;
  for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
    Options options = nccl(6);
    options.seed = seed;
    options.timeline = true;
    Report report = run(options, [](Rank rank) {
      const Subgroups pairs = new_subgroups(2);
      const ProcessGroup part = split_group({{0}, {1}}, {.parent = pairs.current});
      Store().add("count", 1);
      all_reduce(one(), {.group = part});
      if (rank > 2) {
        Store().get("never");
      }
      destroy_process_group(pairs.current);
    });
    report.seed = 0;
    reports.push_back(viz::json_report(report) + std::to_string(report.timeline.fingerprint()));
  }
  for (const std::string& report : reports) {
    CHECK(report == reports.front());
  }
}

}  // namespace rollcall::sim
