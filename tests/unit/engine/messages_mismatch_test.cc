// Sends and receives whose ends do not match, and those that the backend refuses.
//
// As in simulate_test.cc, nothing is checked inside a rank.

#include <array>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/unit/engine/job.h"

namespace rollcall::sim::messages_mismatch_test {

TEST_CASE("gloo: a receiver with too little room aborts, and whoever waits for it sees its end",
          "[messages][fiber]") {
  const Report report = gloo_job.run(3, [](Rank rank) {
    if (rank == 0) {
      send(gloo_job.numbers(4, 1), 1);
    } else if (rank == 1) {
      recv(gloo_job.numbers(2, 0), 0);
    } else {
      recv(gloo_job.number(), 1);
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
  const Report report = gloo_job.run(2, [](Rank rank) {
    if (rank == 0) {
      send(gloo_job.numbers(4, 1), 1);
    } else {
      const Work work = irecv(gloo_job.numbers(2, 0), 0);
      compute(second);
      work.wait();
    }
  });
  CHECK(kind(report) == "mismatch numel_mismatch");
  CHECK(report.of(1).state == State::crashed);
}

TEST_CASE("gloo: an asynchronous receive with too little room ends its rank, whatever that waits in",
          "[messages][fiber]") {
  const Report report = gloo_job.run(2, [](Rank rank) {
    if (rank == 0) {
      send(gloo_job.numbers(4, 1), 1);
    } else {
      irecv(gloo_job.numbers(2, 0), 0);
      recv(gloo_job.number(), 0);
    }
  });
  CHECK(kind(report) == "mismatch numel_mismatch");
  CHECK(report.of(1).state == State::crashed);
  CHECK(report.of(1).exception.find("op.preamble.length <= op.nbytes. 16 vs 8") != std::string::npos);
}

TEST_CASE("gloo: a receiver with too much room keeps its tail", "[messages][fiber]") {
  std::vector<double> got;
  const Report report = gloo_job.run(2, [&](Rank rank) {
    if (rank == 0) {
      send(gloo_job.numbers(2, 1), 1);
    } else {
      const Tensor tensor = gloo_job.numbers(4, 9);
      recv(tensor, 0);
      got = tensor.to_vector();
    }
  });
  CHECK(kind(report) == "mismatch numel_mismatch");
  CHECK(report.of(1).state == State::finished);
  CHECK(got == std::vector<double>{1, 1, 9, 9});
}

TEST_CASE("gloo: a mismatch with a receive from anyone names the sender", "[messages][fiber]") {
  const Report report = gloo_job.run(3, [](Rank rank) {
    if (rank == 2) {
      send(gloo_job.numbers(2, 1), 0);
    } else if (rank == 0) {
      recv(gloo_job.numbers(4, 0));
    }
  });
  CHECK(kind(report) == "mismatch numel_mismatch");
  CHECK(finding(report).headline == "rank 2 sends 2 x float32 to rank 0, which receives 4 x float32");
}

TEST_CASE("nccl: ends of different size hang both ranks", "[messages][fiber]") {
  const Report report = nccl_job.run(2, [](Rank rank) {
    rank == 0 ? send(nccl_job.numbers(4, 1), 1) : static_cast<void>(recv(nccl_job.numbers(2, 0), 0));
  });
  CHECK(kind(report) == "mismatch numel_mismatch");
  CHECK(report.of(0).state == State::waiting);
  CHECK(report.of(1).state == State::waiting);
}

TEST_CASE("nobody looks at the dtypes of a message's ends", "[messages][fiber]") {
  for (const Job& job : both_jobs) {
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

TEST_CASE("nccl has no receive from anyone", "[messages][fiber]") {
  const Report report = nccl_job.run(2, [](Rank rank) {
    rank == 0 ? static_cast<void>(recv(nccl_job.number())) : send(nccl_job.number(), 0);
  });
  CHECK(report.of(0).exception == "NotImplementedError: ProcessGroupNCCL does not support recvAnysource");
  CHECK(kind(report) == "deadlock rank_crashed");
}

TEST_CASE("the backend refuses peers and tags that do not exist", "[messages][fiber]") {
  std::vector<std::string> texts;
  Options options = gloo(2);
  options.torch = TorchRelease::v2_6;
  const Report report = run(options, [&](Rank rank) {
    const Tensor tensor = gloo_job.number();
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
  const Report report = nccl_job.run(2, [](Rank rank) {
    if (rank == 0) {
      send(Tensor::ones({1}), 9);
    }
  });
  CHECK(kind(report) == "device_mismatch cpu_tensor");
  CHECK(finding(report).at->call.peer == -1);
}

TEST_CASE("a batch that is refused leaves no batch open", "[messages][fiber]") {
  const Report report = nccl_job.run(2, [](Rank rank) {
    const Tensor tensor = nccl_job.number();
    const std::array batch{PointToPoint{OpKind::send, tensor, 7}};
    if (rank == 0) {
      try {
        batch_isend_irecv(batch);
      } catch (const Error&) {
        print("refused");
      }
    }
    barrier();
    isend(tensor, 1 - rank);  // no longer a batch: the two sends block the two receives
    recv(tensor, 1 - rank);
  });
  REQUIRE(report.output.size() == 1);
  CHECK(kind(report) == "deadlock send_send");
}

}  // namespace rollcall::sim::messages_mismatch_test
