// Sends and receives as a user of sim::run sees them: what arrives, from whom and when.
//
// As in simulate_test.cc, nothing is checked inside a rank.

#include <array>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/unit/engine/job.h"

namespace rollcall::sim::messages_test {

TEST_CASE("a message arrives as it was sent", "[messages][fiber]") {
  for (const Job& job : both_jobs) {
    std::vector<double> got;
    Rank source = -1;
    const Report report = job.run(2, [&](Rank rank) {
      const Tensor tensor = job.numbers(3, rank);
      if (rank == 0) {
        tensor.fill_(7);
        send(tensor, 1);
      } else {
        source = recv(tensor, 0);
        got = tensor.to_vector();
      }
    });
    CHECK(kind(report) == "ok");
    CHECK(got == std::vector<double>{7, 7, 7});
    CHECK(source == 0);
    CHECK(report.ops == 2);
    CHECK(report.simulated_time > 0);
  }
}

TEST_CASE("a message is waited for once on gloo, and as often as one likes on nccl", "[messages][fiber]") {
  for (const Job& job : both_jobs) {
    const auto waits = [&](int times) {
      return job.run(2, [&job, times](Rank rank) {
        const Tensor tensor = job.numbers(3, rank);
        const Work work = rank == 0 ? isend(tensor, 1) : irecv(tensor, 0);
        while (!work.is_completed()) {
          compute(1);
        }
        for (int i = 0; i < (rank == 0 ? times : 1); ++i) {
          work.wait();
        }
      });
    };
    CHECK(kind(waits(1)) == "ok");
    const bool is_gloo = std::string_view(job.backend) == "gloo";
    const Report twice = waits(2);
    CHECK(kind(twice) == (is_gloo ? "deadlock waited_twice" : "ok"));
    if (is_gloo) {
      CHECK(culprits(twice) == "0");
      CHECK(finding(twice).headline == "rank 0 waits a second time for send #0 on world");
    }
  }
}

TEST_CASE("a call that nobody waited for is a leak where that is asked for, unless it was seen to be over",
          "[messages][fiber]") {
  const auto program = [](bool asks) {
    return [asks](Rank rank) {
      const Tensor tensor = Tensor::ones({4});
      const Work work = rank == 0 ? isend(tensor, 1) : irecv(tensor, 0);
      while (rank == 1 || asks ? !work.is_completed() : false) {
        compute(1);
      }
      destroy_process_group();
    };
  };
  Options options = gloo(2);
  CHECK(kind(run(options, program(false))) == "ok");
  options.check_leaks = true;
  CHECK(kind(run(options, program(true))) == "ok");
  const Report report = run(options, program(false));
  CHECK(kind(report) == "resource_leak work_never_waited");
  CHECK(culprits(report) == "0");
}

TEST_CASE("gloo matches by tag, nccl in order", "[messages][fiber]") {
  for (const Job& job : both_jobs) {
    std::vector<double> got;
    const Report report = job.run(2, [&](Rank rank) {
      const Tensor first = job.number(rank == 0 ? 1 : 0);
      const Tensor last = job.number(rank == 0 ? 2 : 0);
      std::vector<Work> works;
      if (rank == 0) {
        works = {isend(first, 1, {.tag = 1}), isend(last, 1, {.tag = 2})};
      } else {
        works = {irecv(first, 0, {.tag = 2}), irecv(last, 0, {.tag = 1})};
      }
      for (const Work& work : works) {
        work.wait();
      }
      if (rank == 1) {
        got = {first.item(), last.item()};
      }
    });
    CHECK(kind(report) == "ok");
    CHECK(got ==
          (std::string_view(job.backend) == "nccl" ? std::vector<double>{1, 2} : std::vector<double>{2, 1}));
  }
}

TEST_CASE("an isend that is never waited for does not hold up its rank", "[messages][fiber]") {
  for (const Job& job : both_jobs) {
    bool completed = true;
    const Report report = job.run_eagerly(2, [&](Rank rank) {
      if (rank == 0) {
        const Work work = isend(job.number(), 1);
        compute(second);
        completed = work.is_completed();
      }
    });
    CHECK(kind(report) == "resource_leak work_never_completed");
    CHECK_FALSE(completed);
    CHECK(report.of(0).state == State::finished);
  }
}

TEST_CASE("an isend delivers what its tensor holds, though the caller has let go of it",
          "[messages][fiber]") {
  for (const Job& job : both_jobs) {
    double got = 0;
    const Report report = job.run(2, [&](Rank rank) {
      if (rank == 0) {
        isend(job.number(5), 1);
      } else {
        compute(2 * millisecond);
        const Tensor tensor = job.number();
        recv(tensor, 0);
        got = tensor.item();
      }
      barrier();
    });
    CHECK(kind(report) == "ok");
    CHECK(got == 5);
  }
}

TEST_CASE("a completed Work stays completed when its memory serves another message", "[messages][fiber]") {
  bool again = false;
  bool other = true;
  const Report report = gloo_job.run(2, [&](Rank rank) {
    if (rank == 0) {
      const Work work = isend(gloo_job.number(), 1);
      work.wait();
      const Work next = isend(gloo_job.number(), 1);
      again = work.is_completed();
      other = next.is_completed();
      next.wait();
    } else {
      recv(gloo_job.number(), 0);
      recv(gloo_job.number(), 0);
    }
  });
  CHECK(kind(report) == "ok");
  CHECK(again);
  CHECK_FALSE(other);
}

TEST_CASE("messages of two groups do not meet", "[messages][fiber]") {
  for (const Job& job : both_jobs) {
    Options options = job.options(4);
    options.groups = {{"low", {0, 1, 2}}, {"high", {1, 2, 3}}};
    options.eager_communicators = true;
    std::vector<double> got;
    const Report good = run(options, [&](Rank rank) {
      const PointToPointOptions low{.group = find_group("low")};
      const PointToPointOptions high{.group = find_group("high")};
      if (rank == 1) {
        const Work first = isend(job.number(1), 2, low);
        const Work last = isend(job.number(2), 2, high);
        first.wait();
        last.wait();
      } else if (rank == 2) {
        const Tensor tensor = job.number();
        recv(tensor, 1, high);
        got.push_back(tensor.item());
        recv(tensor, 1, low);
        got.push_back(tensor.item());
      }
    });
    CHECK(kind(good) == "ok");
    CHECK(got == std::vector<double>{2, 1});

    const Report bad = run(options, [&](Rank rank) {
      const PointToPointOptions low{.group = find_group("low")};
      const PointToPointOptions high{.group = find_group("high")};
      if (rank == 1) {
        send(job.number(), 2, low);
      } else if (rank == 2) {
        recv(job.number(), 1, high);
      }
    });
    CHECK(kind(bad) == "deadlock wrong_peer");
    CHECK(finding(bad).at->call.group == "low");
    CHECK(finding(bad).at->call.peer == 2);  // global, though it is rank 1 of "high"
  }
}

TEST_CASE("a receive without a source answers who sent, as a global rank", "[messages][fiber]") {
  Options options = gloo_job.options(4);
  options.groups = {{"odd", {1, 3}}};
  std::vector<Rank> sources;
  Rank in_group = -1;
  const Report report = run(options, [&](Rank rank) {
    if (rank == 1) {
      send(gloo_job.number(), 3, {.group = find_group("odd")});
    } else if (rank == 3) {
      in_group = recv(gloo_job.number(), std::nullopt, {.group = find_group("odd")});
    }
    barrier();
    for (int i = 0; i < 3; ++i) {
      if (rank == 0) {
        sources.push_back(recv(gloo_job.number()));
      } else if (rank == i + 1) {
        send(gloo_job.number(), 0);
      }
    }
  });
  CHECK(kind(report) == "ok");
  CHECK(in_group == 1);
  CHECK(sources == std::vector<Rank>{1, 2, 3});
}

TEST_CASE("an exchange that waits in line on nccl goes through in a batch", "[messages][fiber]") {
  const auto exchange = [](const Job& job, bool batched, std::vector<double>& got) {
    return job.run(2, [&, batched](Rank rank) {
      const Tensor in = job.number();
      const Tensor out = job.number(rank + 1);
      const std::array batch{PointToPoint{OpKind::send, out, next_of(rank)},
                             PointToPoint{OpKind::recv, in, previous_of(rank)}};
      const std::vector<Work> works =
          batched ? batch_isend_irecv(batch)
                  : std::vector<Work>{isend(out, next_of(rank)), irecv(in, previous_of(rank))};
      for (const Work& work : works) {
        work.wait();
      }
      got[static_cast<std::size_t>(rank)] = in.item();
    });
  };
  std::vector<double> got(2);
  CHECK(kind(exchange(nccl_job, false, got)) == "deadlock send_send");
  for (const bool batched : {false, true}) {
    got = {0, 0};
    CHECK(kind(exchange(gloo_job, batched, got)) == "ok");
    CHECK(got == std::vector<double>{2, 1});
  }
  got = {0, 0};
  CHECK(kind(exchange(nccl_job, true, got)) == "ok");
  CHECK(got == std::vector<double>{2, 1});
}

TEST_CASE("a thousand ranks pass a number round", "[messages][fiber]") {
  for (const Job& job : both_jobs) {
    double end = 0;
    const Report report = job.run(1000, [&](Rank rank) {
      const Tensor tensor = job.number();
      if (rank == 0) {
        send(tensor, 1);
        recv(tensor, 999);
        end = tensor.item();
      } else {
        recv(tensor, rank - 1);
        tensor.add_(job.number(1));
        send(tensor, next_of(rank));
      }
    });
    CHECK(kind(report) == "ok");
    CHECK(end == 999);
    CHECK(report.ops == 2000);
  }
}

TEST_CASE("a thousand ranks that shift at once take the time of one message", "[messages][fiber]") {
  const auto shift = [](Rank world_size) {
    return nccl_job.run(world_size, [](Rank rank) {
      const Tensor in = nccl_job.number();
      const std::array batch{PointToPoint{OpKind::send, nccl_job.number(rank), next_of(rank)},
                             PointToPoint{OpKind::recv, in, previous_of(rank)}};
      for (const Work& work : batch_isend_irecv(batch)) {
        work.wait();
      }
      print(std::to_string(static_cast<Rank>(in.item())));
    });
  };
  const Report report = shift(1000);
  CHECK(kind(report) == "ok");
  REQUIRE(report.output.size() == 1000);
  CHECK(report.output[0].text == "999");
  CHECK(report.output[500].text == "499");
  CHECK(report.simulated_time == shift(4).simulated_time);
}

TEST_CASE("the order in which ranks run shows nowhere in what messages do", "[messages][fiber]") {
  const auto mixed = [](std::uint64_t seed) {
    Options options = gloo_job.options(6);
    options.seed = seed;
    options.timeline = true;
    return run(options, [](Rank rank) {
      // Every rank sends to two others, with sizes that cost differently and that mismatch in two places.
      const Tensor small = gloo_job.numbers(1 + rank % 2, rank);
      const Tensor large = gloo_job.numbers(100000 * (1 + rank % 3), rank);
      const std::vector<Work> works{isend(small, next_of(rank)), isend(large, previous_of(rank), {.tag = 1})};
      recv(gloo_job.numbers(2, 0), previous_of(rank));
      recv(gloo_job.numbers(300000, 0), next_of(rank), {.tag = 1});
      for (const Work& work : works) {
        work.wait();
      }
      if (rank == 0) {
        for (int i = 1; i < 6; ++i) {
          print(std::to_string(recv(gloo_job.number())));
        }
      } else {
        send(gloo_job.number(), 0);
      }
    });
  };
  const Report first = mixed(0);
  CHECK(kind(first) == "mismatch numel_mismatch");
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6, 7}) {
    const Report other = mixed(seed);
    CHECK(first.timeline.fingerprint() == other.timeline.fingerprint());
    CHECK(finding(first).headline == finding(other).headline);
    CHECK(first.simulated_time == other.simulated_time);
    REQUIRE(first.output.size() == other.output.size());
    for (std::size_t i = 0; i < first.output.size(); ++i) {
      CHECK(first.output[i].text == other.output[i].text);
    }
  }
}

TEST_CASE("messages stand in the timeline, and those that never ended stay open", "[messages][fiber]") {
  Options options = gloo_job.options(2);
  options.timeline = true;
  const Report report = run(options, [](Rank rank) {
    if (rank == 0) {
      send(gloo_job.number(), 1);
      send(gloo_job.number(), 1);
    } else {
      compute(millisecond);
      recv(gloo_job.number(), 0);
    }
  });
  std::vector<std::string> seen;
  for (const Span& span : report.timeline.spans()) {
    const bool open = span.end == Span::open;
    seen.push_back(std::to_string(span.rank) + " " + report.timeline.name(span.name) + " " +
                   std::to_string(span.seq) + (open ? " open" : ""));
  }
  CHECK(seen == std::vector<std::string>{"1 compute -1", "0 send 0", "1 recv 0", "0 send 1 open"});
}

}  // namespace rollcall::sim::messages_test
