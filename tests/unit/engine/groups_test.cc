// Groups that are created, split and destroyed during a run, as a user of sim::run sees them.
//
// As in simulate_test.cc, nothing is checked inside a rank.

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/unit/engine/job.h"
#include "viz/json/json_report.h"

namespace rollcall::sim::groups_test {

namespace {

Options on(TorchRelease torch, Options options) {
  options.torch = torch;
  return options;
}

constexpr TorchRelease releases_of_2[] = {TorchRelease::v2_6, TorchRelease::v2_14};

}  // namespace

TEST_CASE("a root outside of its group is reported where the call is", "[groups][fiber]") {
  const Report report = run(gloo(3), [](Rank) {
    const ProcessGroup pair = new_group(RankList{0, 2});
    broadcast(one(), 1, {.group = pair});
  });
  const Finding* finding = finding_of(report.verdict);
  REQUIRE(finding != nullptr);
  CHECK(finding->kind == FindingKind::root_not_in_group);
  REQUIRE(finding->at);
  CHECK(finding->at->call.site.starts_with("groups_test.cc:"));
}

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

TEST_CASE("in 1.13 a rank that does not call new_group is the culprit, member or not", "[groups][fiber]") {
  for (const Options& options : {on(TorchRelease::v1_13, gloo(8)), on(TorchRelease::v1_13, nccl(8))}) {
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

TEST_CASE("since 2.x nobody waits in new_group for ranks that are not members", "[groups][fiber]") {
  for (const TorchRelease torch : releases_of_2) {
    for (const Options& options : {on(torch, gloo(8)), on(torch, nccl(8))}) {
      const Report report = run(options, [](Rank rank) {
        if (rank < 2) {
          all_reduce(one(), {.group = new_group(RankList{0, 1})});
        }
      });
      CHECK(kind(report) == "ok");
    }
  }
}

TEST_CASE("since 2.x members of a Gloo group wait in new_group for members", "[groups][fiber]") {
  for (const TorchRelease torch : releases_of_2) {
    const Report report = run(on(torch, gloo(4)), [](Rank rank) {
      if (rank != 1) {
        new_group(RankList{0, 1});
      }
    });
    CHECK(kind(report) == "deadlock missing_participant");
    CHECK(culprits(report) == "1");
    CHECK(report.of(0).state == RankClass::State::waiting);
    CHECK(report.of(2).state == RankClass::State::finished);
    CHECK_THAT(finding(report).on_backend, Contains("Wait timeout"));
    CHECK_THAT(finding(report).advice, Contains("number of the call"));
  }
}

TEST_CASE("a rank that skipped a group of others has other names for those that follow", "[groups][fiber]") {
  for (const TorchRelease torch : releases_of_2) {
    const Report report = run(on(torch, gloo(4)), [](Rank rank) {
      if (rank != 3) {
        new_group(RankList{0, 1});
      }
      all_reduce(one(), {.group = new_group()});
    });
    CHECK(kind(report) == "mismatch group_args_mismatch");
    CHECK(culprits(report) == "3");
    CHECK(finding(report).at->call.seq == 0);
  }
}

TEST_CASE("members make a group alone with use_local_synchronization", "[groups][fiber]") {
  for (const TorchRelease torch : releases_of_2) {
    for (const Options& options : {on(torch, gloo(4)), on(torch, nccl(4))}) {
      std::vector<double> sums(4);
      const Report report = run(options, [&](Rank rank) {
        if (rank == 0) {
          return;
        }
        const ProcessGroup group = new_group(RankList{1, 3}, {.use_local_synchronization = true});
        const Tensor tensor = one();
        all_reduce(tensor, {.group = group});
        sums[static_cast<std::size_t>(rank)] = tensor.item();
      });
      CHECK(kind(report) == "ok");
      CHECK(sums == std::vector<double>{0, 2, 1, 2});
    }
  }
}

TEST_CASE("everybody can make a group with use_local_synchronization, and more than one", "[groups][fiber]") {
  for (const TorchRelease torch : releases_of_2) {
    const Report report = run(on(torch, gloo(3)), [](Rank) {
      const ProcessGroup first = new_group({}, {.use_local_synchronization = true});
      const ProcessGroup second = new_group(RankList{0, 1, 2}, {.use_local_synchronization = true});
      all_reduce(one(), {.group = first});
      all_reduce(one(), {.group = second});
    });
    CHECK(kind(report) == "ok");
  }
}

TEST_CASE("a member that does not come to a local group is the culprit", "[groups][fiber]") {
  const Report report = run(gloo(4), [](Rank rank) {
    if (rank != 2) {
      new_group(RankList{1, 2}, {.use_local_synchronization = true});
    }
  });
  CHECK(kind(report) == "deadlock missing_participant");
  CHECK(culprits(report) == "2");
}

TEST_CASE("in 2.14 a local group counts among the names of later groups, in 2.6 it does not",
          "[groups][fiber]") {
  const Program program = [](Rank rank) {
    if (rank < 3) {
      new_group(RankList{0, 1, 2}, {.use_local_synchronization = true});
    }
    all_reduce(one(), {.group = new_group()});
  };
  CHECK(kind(run(on(TorchRelease::v2_6, gloo(4)), program)) == "ok");
  CHECK_THAT(kind(run(on(TorchRelease::v2_14, gloo(4)), program)), StartsWith("deadlock"));
}

TEST_CASE("1.13 does not know use_local_synchronization", "[groups][fiber]") {
  const Report report = run(on(TorchRelease::v1_13, gloo(2)), [](Rank) {
    new_group(RankList{0, 1}, {.use_local_synchronization = true});
  });
  CHECK_THAT(std::get<RankFailed>(report.verdict).exception, StartsWith("TypeError: new_group()"));
}

TEST_CASE("communicators that are made at once are split off the world's by everybody", "[groups][fiber]") {
  Options options = nccl(4);
  options.eager_communicators = true;
  const Report report = run(options, [](Rank rank) {
    if (rank != 3) {
      new_group(RankList{0, 1});
    }
  });
  CHECK(kind(report) == "deadlock missing_participant");
  CHECK(culprits(report) == "3");
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
  const Report report = run(gloo(3), [](Rank rank) {
    if (rank == 1) {
      throw ValueError("bad sample");
    }
    new_group();
  });
  CHECK(kind(report) == "deadlock rank_crashed");
  CHECK(culprits(report) == "1");
}

TEST_CASE("a collective and a new_group that wait for each other are a cycle", "[groups][fiber]") {
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

TEST_CASE("ranks that use groups made at run time in different orders are warned, although nothing blocks",
          "[groups][fiber]") {
  for (const Rank crossing : {1, 2}) {  // 2 is not a rank: all use them in one order
    const Report report = run(gloo(2), [crossing](Rank rank) {
      all_reduce(one());
      const ProcessGroup groups[] = {new_group(), new_group()};
      const int first = rank == crossing ? 1 : 0;
      const Work works[] = {all_reduce(one(), {.group = groups[first], .async_op = true}),
                            all_reduce(one(), {.group = groups[1 - first], .async_op = true})};
      works[0].wait();
      works[1].wait();
    });
    CHECK(kind(report) == "ok");
    REQUIRE(report.output.size() == (crossing == 1 ? 1 : 0));
    if (crossing == 1) {
      CHECK(report.output[0].rank == 1);
      CHECK(report.output[0].text.starts_with("warning: this rank uses groups "));
      CHECK(report.output[0].text.find("in a different order than rank 0") != std::string::npos);
    }
  }
}

TEST_CASE("a rank that learns of a group later than others uses it in the same order", "[groups][fiber]") {
  Options options = gloo(2);
  options.groups = {{"pair", {0, 1}}};
  const Report report = run(options, [](Rank rank) {
    const ProcessGroup early = rank == 0 ? find_group("pair") : ProcessGroup();
    all_reduce(one());
    all_reduce(one());
    all_reduce(one(), {.group = early ? early : find_group("pair")});
  });
  CHECK(kind(report) == "ok");
  CHECK(report.output.empty());
}

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
  const TorchRelease old = TorchRelease::v1_13;
  CHECK(error_of(on(old, gloo(4)), 2) == "ValueError: Subgroups can only be created when CUDA is available");
  CHECK(error_of(on(old, nccl(3)), 2) == "ValueError: The world size must be divisible by 'group_size'");
  CHECK(error_of(on(old, nccl(3)), 4) == "ValueError: The arg 'group_size' must not exceed the world size");
  CHECK(error_of(gloo(3), 2) == "ValueError: The world size (3) must be divisible by 'group_size=2'");
  CHECK(error_of(gloo(3), 4) == "ValueError: The arg 'group_size' (4) must not exceed the world size (3)");
  CHECK(error_of(gloo(3), 0) == "ValueError: The arg 'group_size' (0) must be positive");
  const Report twice = run(nccl(3), [](Rank) { new_subgroups_by_enumeration({{0, 1}, {1, 2}}); });
  CHECK(std::get<RankFailed>(twice.verdict).exception ==
        "ValueError: Rank 1 has appeared in both subgroup [0, 1] and [1, 2]");
}

TEST_CASE("split_group takes ranks of the parent and needs all of them", "[groups][fiber]") {
  std::vector<Rank> seen(6, -2);
  const Report report = nccl_job.run_eagerly(6, [&](Rank rank) {
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

  const Report missing = nccl_job.run_eagerly(3, [](Rank rank) {
    if (rank != 2) {
      split_group({{0, 1}});
    }
  });
  CHECK(kind(missing) == "deadlock missing_participant");
  CHECK(culprits(missing) == "2");
}

TEST_CASE("split_group needs a device_id, and a release that has it", "[groups][fiber]") {
  const auto split = [](Rank) { split_group({{0, 1}}); };
  const std::string unbound =
      "RuntimeError: No device associated with the default pg, not safe to split any process groups";
  CHECK(std::get<RankFailed>(run(gloo(2), split).verdict).exception == unbound);
  CHECK(std::get<RankFailed>(run(nccl(2), split).verdict).exception == unbound);
  CHECK(kind(nccl_job.run_eagerly(2, split)) == "ok");
  CHECK(std::get<RankFailed>(run(on(TorchRelease::v1_13, nccl(2)), split).verdict).exception ==
        "AttributeError: module 'torch.distributed' has no attribute 'split_group'");
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
  CHECK(std::get<RankFailed>(twice.verdict).exception == "ValueError: Invalid process group specified");
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

TEST_CASE("a group that ranks give different names has the lowest rank's", "[groups][fiber]") {
  for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
    Options options = nccl(3);
    options.seed = seed;
    const Report report = run(options, [](Rank rank) {
      const ProcessGroup made = new_group(std::vector<Rank>{0, 1, 2}, {.name = "by" + std::to_string(rank)});
      if (rank > 0) {
        all_reduce(one(), {.group = made});
      }
    });
    CHECK(finding(report).at->call.group == "by0");
  }
}

TEST_CASE("reports about groups and keys do not depend on the order in which ranks run", "[groups][fiber]") {
  std::vector<std::string> reports;
  for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
    Options options = nccl(6);
    options.seed = seed;
    options.timeline = true;
    options.eager_communicators = true;
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

}  // namespace rollcall::sim::groups_test
