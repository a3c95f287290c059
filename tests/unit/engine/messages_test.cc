// Sends and receives as a user of sim::run sees them: what arrives, what hangs, and who is said to be at
// fault.
//
// As in simulate_test.cc, nothing is checked inside a rank.

#include <array>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/dist.h"
#include "sim/engine/simulate.h"

namespace rollcall::sim {
namespace {

using State = RankClass::State;

// A simulated job on one of the two backends, with tensors where that backend wants them.
struct Job {
  const char* backend;

  Options options(Rank world_size) const { return {.world_size = world_size, .backend = backend}; }
  Report run(Rank world_size, const Program& program) const { return sim::run(options(world_size), program); }
  Tensor numbers(std::int64_t count, double value, Dtype dtype = Dtype::float32) const {
    const bool on_gpu = std::string(backend) == "nccl";
    return Tensor::full({count}, value, dtype,
                        on_gpu ? Device{DeviceType::cuda, static_cast<std::int16_t>(get_rank())} : Device{});
  }
  Tensor number(double value = 0) const { return numbers(1, value); }
};

const Job gloo{"gloo"};
const Job nccl{"nccl"};
const std::array<Job, 2> both{gloo, nccl};

std::string word(const Report& report) { return std::string(verdict_word(report.verdict)); }

const Finding& finding(const Report& report) {
  REQUIRE(finding_of(report.verdict) != nullptr);
  return *finding_of(report.verdict);
}

std::string kind(const Report& report) {
  return word(report) == "ok" ? "ok" : word(report) + " " + finding(report).kind;
}

Rank next_of(Rank rank) { return (rank + 1) % get_world_size(); }
Rank previous_of(Rank rank) { return (rank + get_world_size() - 1) % get_world_size(); }

}  // namespace

TEST_CASE("a message arrives as it was sent", "[messages][fiber]") {
  for (const Job& job : both) {
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

TEST_CASE("a send is through when its receive is there, not before", "[messages][fiber]") {
  for (const Job& job : both) {
    bool received = false;
    bool early = false;
    const Report report = job.run(2, [&](Rank rank) {
      if (rank == 0) {
        send(job.number(), 1);
        synchronize();  // on nccl only the stream has waited
        early = !received;
      } else {
        compute(5 * millisecond);
        received = true;
        recv(job.number(), 0);
      }
    });
    CHECK(kind(report) == "ok");
    CHECK_FALSE(early);
    CHECK(report.simulated_time > 5 * millisecond);
  }
}

TEST_CASE("two ranks that send first wait for each other", "[messages][fiber]") {
  for (const Job& job : both) {
    const Report report = job.run(2, [&](Rank rank) {
      send(job.number(), 1 - rank);
      recv(job.number(), 1 - rank);
    });
    CHECK(kind(report) == "deadlock send_send");
    CHECK(to_string(finding(report).culprits) == "0-1");
    CHECK(finding(report).at->call.op == "send");
    CHECK(finding(report).at->call.peer == 1);
    CHECK(finding(report).chain.size() == 2);
    CHECK(to_string(report.of(0).waits_for) == "1");
  }
}

TEST_CASE("a ring of sends is a circle, and only the ring is in it", "[messages][fiber]") {
  for (const Job& job : both) {
    const Report report = job.run(4, [&](Rank rank) {
      if (rank < 3) {
        send(job.number(), (rank + 1) % 3);
        recv(job.number(), (rank + 2) % 3);
      } else {
        recv(job.number(), 0);
      }
    });
    CHECK(kind(report) == "deadlock send_send");
    CHECK(to_string(finding(report).culprits) == "0-2");
  }
}

TEST_CASE("two ranks that receive first wait for each other", "[messages][fiber]") {
  for (const Job& job : both) {
    const Report report = job.run(2, [&](Rank rank) {
      recv(job.number(), 1 - rank);
      send(job.number(), 1 - rank);
    });
    CHECK(kind(report) == "deadlock recv_recv");
    CHECK(to_string(finding(report).culprits) == "0-1");
  }
}

TEST_CASE("sends and receives in orders that do not fit are told apart from circles of one kind",
          "[messages][fiber]") {
  const Report tags = gloo.run(2, [](Rank rank) {
    for (const std::int32_t tag : {1, 2}) {
      if (rank == 0) {
        send(gloo.number(), 1, {.tag = tag});
      } else {
        recv(gloo.number(), 0, {.tag = 3 - tag});
      }
    }
  });
  CHECK(kind(tags) == "deadlock p2p_order");
  CHECK(finding(tags).at->call.tag == 1);
  const Report ring =
      nccl.run(3, [](Rank rank) {  // 0 sends to 1, which receives from 2, which receives from 0
        if (rank == 0) {
          send(nccl.number(), 1);
          send(nccl.number(), 2);
        } else if (rank == 1) {
          recv(nccl.number(), 2);
          recv(nccl.number(), 0);
        } else {
          recv(nccl.number(), 0);
          send(nccl.number(), 1);
        }
      });
  CHECK(kind(ring) == "deadlock p2p_order");
  CHECK(to_string(finding(ring).culprits) == "0-2");
}

TEST_CASE("a message and a collective in crossed order are a crossing", "[messages][fiber]") {
  for (const Job& job : both) {
    const Report report = job.run(2, [&](Rank rank) {
      if (rank == 0) {
        send(job.number(), 1);
        all_reduce(job.number());
      } else {
        all_reduce(job.number());
        recv(job.number(), 0);
      }
    });
    CHECK(kind(report) == "deadlock order_crossing");
    CHECK(to_string(finding(report).culprits) == "0-1");
  }
}

TEST_CASE("a send that nobody receives is the receiver's omission", "[messages][fiber]") {
  for (const Job& job : both) {
    const Report report = job.run(2, [&](Rank rank) {
      for (int i = 0; i < 3 - rank; ++i) {
        rank == 0 ? send(job.number(), 1) : static_cast<void>(recv(job.number(), 0));
      }
    });
    CHECK(kind(report) == "deadlock unmatched_send");
    CHECK(to_string(finding(report).culprits) == "1");
    CHECK(finding(report).at->call.seq == 2);
    CHECK(to_string(finding(report).at->waiting) == "0");
    CHECK(finding(report).headline == "nobody receives what rank 0 sends to rank 1 (send #2 on world)");
  }
}

TEST_CASE("a receive that nobody sends to is the sender's omission", "[messages][fiber]") {
  for (const Job& job : both) {
    const Report report = job.run(3, [&](Rank rank) {
      if (rank == 0) {
        recv(job.number(), 2);
      } else if (rank == 1) {
        recv(job.number(), 0);  // waits, but only because rank 0 does
      }
    });
    CHECK(kind(report) == "deadlock unmatched_recv");
    CHECK(to_string(finding(report).culprits) == "2");
    CHECK(finding(report).at->call.peer == 2);
    CHECK(to_string(finding(report).at->waiting) == "0");
  }
}

TEST_CASE("a receive from anyone that nobody sends to names no peer", "[messages][fiber]") {
  const Report report = gloo.run(3, [](Rank rank) {
    if (rank == 1) {
      recv(gloo.number());
    }
  });
  CHECK(kind(report) == "deadlock unmatched_recv");
  CHECK(to_string(finding(report).culprits) == "0,2");
  CHECK(finding(report).at->call.peer == -1);
  CHECK(finding(report).headline.find("from anyone") != std::string::npos);
}

TEST_CASE("a peer that raises leaves the other end of its message waiting", "[messages][fiber]") {
  for (const Job& job : both) {
    const Report report = job.run(3, [&](Rank rank) {
      if (rank == 1) {
        throw std::runtime_error("out of memory");
      }
      if (rank == 0) {
        recv(job.number(), 1);
      } else {
        send(job.number(), 0);
      }
    });
    CHECK(kind(report) == "deadlock rank_crashed");
    CHECK(to_string(finding(report).culprits) == "1");
    CHECK(to_string(finding(report).at->waiting) == "0");
    CHECK(report.of(2).state == State::waiting);
  }
}

TEST_CASE("gloo: a receiver with too little room aborts, and whoever waits for it sees its end",
          "[messages][fiber]") {
  const Report report = gloo.run(3, [](Rank rank) {
    if (rank == 0) {
      send(gloo.numbers(4, 1), 1);
    } else if (rank == 1) {
      recv(gloo.numbers(2, 0), 0);
    } else {
      recv(gloo.number(), 1);
    }
  });
  CHECK(kind(report) == "mismatch numel_mismatch");
  CHECK(finding(report).headline == "rank 0 sends 4 x float32 to rank 1, which receives 2 x float32");
  CHECK(report.of(0).state == State::finished);
  CHECK(report.of(1).state == State::crashed);
  CHECK(report.of(1).exception.find("op.preamble.length <= op.nbytes. 16 vs 8") != std::string::npos);
  CHECK(report.of(2).state == State::raised);
  CHECK(report.of(2).exception.find("Connection closed by peer") != std::string::npos);
}

TEST_CASE("gloo: an asynchronous receive with too little room aborts the rank that waits for it",
          "[messages][fiber]") {
  const Report report = gloo.run(2, [](Rank rank) {
    if (rank == 0) {
      send(gloo.numbers(4, 1), 1);
    } else {
      const Work work = irecv(gloo.numbers(2, 0), 0);
      compute(second);
      work.wait();
    }
  });
  CHECK(kind(report) == "mismatch numel_mismatch");
  CHECK(report.of(1).state == State::crashed);
}

TEST_CASE("gloo: a receiver with too much room keeps its tail", "[messages][fiber]") {
  std::vector<double> got;
  const Report report = gloo.run(2, [&](Rank rank) {
    if (rank == 0) {
      send(gloo.numbers(2, 1), 1);
    } else {
      const Tensor tensor = gloo.numbers(4, 9);
      recv(tensor, 0);
      got = tensor.to_vector();
    }
  });
  CHECK(kind(report) == "mismatch numel_mismatch");
  CHECK(report.of(1).state == State::finished);
  CHECK(got == std::vector<double>{1, 1, 9, 9});
}

TEST_CASE("gloo: a mismatch with a receive from anyone names the sender", "[messages][fiber]") {
  const Report report = gloo.run(3, [](Rank rank) {
    if (rank == 2) {
      send(gloo.numbers(2, 1), 0);
    } else if (rank == 0) {
      recv(gloo.numbers(4, 0));
    }
  });
  CHECK(kind(report) == "mismatch numel_mismatch");
  CHECK(finding(report).headline == "rank 2 sends 2 x float32 to rank 0, which receives 4 x float32");
}

TEST_CASE("nccl: ends of different size hang both ranks", "[messages][fiber]") {
  const Report report = nccl.run(2, [](Rank rank) {
    rank == 0 ? send(nccl.numbers(4, 1), 1) : static_cast<void>(recv(nccl.numbers(2, 0), 0));
  });
  CHECK(kind(report) == "mismatch numel_mismatch");
  CHECK(report.of(0).state == State::waiting);
  CHECK(report.of(1).state == State::waiting);
}

TEST_CASE("nobody looks at the dtypes of a message's ends", "[messages][fiber]") {
  for (const Job& job : both) {
    std::int64_t got = 0;
    const Report report = job.run(2, [&](Rank rank) {
      if (rank == 0) {
        send(job.number(1), 1);
      } else {
        const Tensor tensor = job.numbers(1, 0, Dtype::int32);
        recv(tensor, 0);
        got = tensor.item_integer();
      }
    });
    CHECK(kind(report) == "mismatch dtype_mismatch");
    CHECK(report.of(0).state == State::finished);
    CHECK(got == 0x3f800000);  // the bits of 1.0f
  }
}

TEST_CASE("gloo matches by tag, nccl in order", "[messages][fiber]") {
  for (const Job& job : both) {
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
    CHECK(got == (job.backend == nccl.backend ? std::vector<double>{1, 2} : std::vector<double>{2, 1}));
  }
}

TEST_CASE("an isend that is never waited for does not hold up its rank", "[messages][fiber]") {
  for (const Job& job : both) {
    bool completed = true;
    const Report report = job.run(2, [&](Rank rank) {
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
  for (const Job& job : both) {
    double got = 0;
    const Report report = job.run(2, [&](Rank rank) {
      if (rank == 0) {
        isend(job.number(5), 1);
        compute(millisecond);
      } else {
        compute(2 * millisecond);  // the sender has finished by now
        const Tensor tensor = job.number();
        recv(tensor, 0);
        got = tensor.item();
      }
    });
    CHECK(kind(report) == "ok");
    CHECK(got == 5);
  }
}

TEST_CASE("a completed Work stays completed when its memory serves another message", "[messages][fiber]") {
  bool again = false;
  bool other = true;
  const Report report = gloo.run(2, [&](Rank rank) {
    if (rank == 0) {
      const Work work = isend(gloo.number(), 1);
      work.wait();
      const Work next = isend(gloo.number(), 1);
      again = work.is_completed();
      other = next.is_completed();
      work.wait();
      next.wait();
    } else {
      recv(gloo.number(), 0);
      recv(gloo.number(), 0);
    }
  });
  CHECK(kind(report) == "ok");
  CHECK(again);
  CHECK_FALSE(other);
}

TEST_CASE("a pending irecv is not what a rank hangs in", "[messages][fiber]") {
  for (const Job& job : both) {
    const Report report = job.run(3, [&](Rank rank) {
      const Tensor tensor = job.number();
      if (rank == 0) {
        irecv(tensor, 1);
      }
      if (rank != 2) {
        barrier();
      }
    });
    CHECK(kind(report) == "deadlock missing_participant");
    CHECK(to_string(finding(report).culprits) == "2");
    CHECK(report.of(0).call->op == "barrier");
    CHECK(report.of(0).call == report.of(1).call);
  }
}

TEST_CASE("messages of two groups do not meet", "[messages][fiber]") {
  for (const Job& job : both) {
    Options options = job.options(4);
    options.groups = {{"low", {0, 1, 2}}, {"high", {1, 2, 3}}};
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
    CHECK(kind(bad) == "deadlock p2p_order");
    CHECK(finding(bad).at->call.group == "low");
    CHECK(finding(bad).at->call.peer == 2);  // global, though it is rank 1 of "high"
  }
}

TEST_CASE("a receive without a source answers who sent, as a global rank", "[messages][fiber]") {
  Options options = gloo.options(4);
  options.groups = {{"odd", {1, 3}}};
  std::vector<Rank> sources;
  Rank in_group = -1;
  const Report report = run(options, [&](Rank rank) {
    if (rank == 1) {
      send(gloo.number(), 3, {.group = find_group("odd")});
    } else if (rank == 3) {
      in_group = recv(gloo.number(), std::nullopt, {.group = find_group("odd")});
    }
    barrier();
    for (int i = 0; i < 3; ++i) {
      if (rank == 0) {
        sources.push_back(recv(gloo.number()));
      } else if (rank == i + 1) {
        send(gloo.number(), 0);
      }
    }
  });
  CHECK(kind(report) == "ok");
  CHECK(in_group == 1);
  CHECK(sources == std::vector<Rank>{1, 2, 3});
}

TEST_CASE("nccl has no receive from anyone", "[messages][fiber]") {
  const Report report = nccl.run(
      2, [](Rank rank) { rank == 0 ? static_cast<void>(recv(nccl.number())) : send(nccl.number(), 0); });
  CHECK(report.of(0).exception == "RuntimeError: ProcessGroupNCCL does not support recvAnysource");
  CHECK(kind(report) == "deadlock rank_crashed");
}

TEST_CASE("the backend refuses peers and tags that do not exist", "[messages][fiber]") {
  std::vector<std::string> texts;
  const Report report = gloo.run(2, [&](Rank rank) {
    const Tensor tensor = gloo.number();
    const auto refused = [&](auto&& call) {
      try {
        call();
      } catch (const Error& error) {
        texts.push_back(std::string(error.type()) + ": " + error.what());
      }
    };
    if (rank == 0) {
      refused([&] { send(tensor, 2); });
      refused([&] { isend(tensor, -1); });
      refused([&] { recv(tensor, 5, {.tag = -1}); });
    }
  });
  CHECK(kind(report) == "ok");
  const std::string index = "IndexError: vector::_M_range_check: __n (which is ";
  CHECK(texts == std::vector<std::string>{index + "2) >= this->size() (which is 2)",
                                          index + "18446744073709551615) >= this->size() (which is 2)",
                                          "RuntimeError: Tag must be nonnegative"});
}

TEST_CASE("nccl: a message from the CPU to a peer that does not exist is a wrong device",
          "[messages][fiber]") {
  const Report report = nccl.run(2, [](Rank rank) {
    if (rank == 0) {
      send(Tensor::ones({1}), 9);
    }
  });
  CHECK(kind(report) == "device_mismatch cpu_tensor");
  CHECK(finding(report).at->call.peer == -1);
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
  CHECK(kind(exchange(nccl, false, got)) == "deadlock send_send");
  for (const bool batched : {false, true}) {
    got = {0, 0};
    CHECK(kind(exchange(gloo, batched, got)) == "ok");
    CHECK(got == std::vector<double>{2, 1});
  }
  got = {0, 0};
  CHECK(kind(exchange(nccl, true, got)) == "ok");
  CHECK(got == std::vector<double>{2, 1});
}

TEST_CASE("a batch that is refused leaves no batch open", "[messages][fiber]") {
  const Report report = nccl.run(2, [](Rank rank) {
    const Tensor tensor = nccl.number();
    const std::array batch{PointToPoint{OpKind::send, tensor, 7}};
    if (rank == 0) {
      try {
        batch_isend_irecv(batch);
      } catch (const Error&) {
        print("refused");
      }
    }
    barrier();
    isend(tensor, 1 - rank);  // no longer a batch: the two sends hold up the two receives
    recv(tensor, 1 - rank);
  });
  REQUIRE(report.output.size() == 1);
  CHECK(kind(report) == "deadlock recv_recv");
}

TEST_CASE("a message waits for its timeout, and its rank for an error", "[messages][fiber]") {
  Options options = gloo.options(2);
  options.timeout = 2 * second;
  const Report report = run(options, [](Rank rank) { send(gloo.number(), 1 - rank); });
  CHECK(kind(report) == "deadlock send_send");
  CHECK(report.of(0).state == State::raised);
  CHECK(report.of(0).exception.find("Timed out waiting 2000ms") != std::string::npos);
  CHECK(report.simulated_time == 2 * second);
}

TEST_CASE("a thousand ranks pass a number round", "[messages][fiber]") {
  for (const Job& job : both) {
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
    return nccl.run(world_size, [](Rank rank) {
      const Tensor in = nccl.number();
      const std::array batch{PointToPoint{OpKind::send, nccl.number(rank), next_of(rank)},
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

TEST_CASE("a thousand ranks that all send first are one circle", "[messages][fiber]") {
  const Report report = nccl.run(1000, [](Rank rank) {
    send(nccl.number(), next_of(rank));
    recv(nccl.number(), previous_of(rank));
  });
  CHECK(kind(report) == "deadlock send_send");
  CHECK(to_string(finding(report).culprits) == "0-999");
}

TEST_CASE("the order in which ranks run shows nowhere in what messages do", "[messages][fiber]") {
  const auto mixed = [](std::uint64_t seed) {
    Options options = gloo.options(6);
    options.seed = seed;
    options.timeline = true;
    return run(options, [](Rank rank) {
      // Every rank sends to two others, of sizes that cost differently and that misfit in two places.
      const Tensor small = gloo.numbers(1 + rank % 2, rank);
      const Tensor large = gloo.numbers(100000 * (1 + rank % 3), rank);
      const std::vector<Work> works{isend(small, next_of(rank)), isend(large, previous_of(rank), {.tag = 1})};
      recv(gloo.numbers(2, 0), previous_of(rank));
      recv(gloo.numbers(300000, 0), next_of(rank), {.tag = 1});
      for (const Work& work : works) {
        work.wait();
      }
      if (rank == 0) {
        for (int i = 1; i < 6; ++i) {
          print(std::to_string(recv(gloo.number())));
        }
      } else {
        send(gloo.number(), 0);
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
  Options options = gloo.options(2);
  options.timeline = true;
  const Report report = run(options, [](Rank rank) {
    if (rank == 0) {
      send(gloo.number(), 1);
      send(gloo.number(), 1);
    } else {
      compute(millisecond);
      recv(gloo.number(), 0);
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

}  // namespace rollcall::sim
