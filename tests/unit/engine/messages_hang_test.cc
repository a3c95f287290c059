// Sends and receives that never end: which rank waits for which, and which rank is blamed.
//
// As in simulate_test.cc, nothing is checked inside a rank.

#include <stdexcept>
#include <string>

#include "tests/catch.h"
#include "tests/unit/engine/job.h"

namespace rollcall::sim::messages_hang_test {

TEST_CASE("a send is through when its receive is there, not before", "[messages][fiber]") {
  for (const Job& job : both_jobs) {
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
  for (const Job& job : both_jobs) {
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

TEST_CASE("a ring of sends is a cycle, and only the ring is in it", "[messages][fiber]") {
  for (const Job& job : both_jobs) {
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

TEST_CASE("where messages run in order, ranks wait in receives behind their own sends to each other",
          "[messages][fiber]") {
  for (const Job& job : both_jobs) {
    const Report report = job.run(3, [&](Rank rank) {
      if (rank == 2) {
        return;
      }
      const Tensor out = job.number();
      const Work sent = isend(out, 1 - rank);
      recv(job.number(), 1 - rank);
      sent.wait();
    });
    if (std::string_view(job.backend) == "gloo") {
      CHECK(kind(report) == "ok");
      continue;
    }
    CHECK(kind(report) == "deadlock send_send");
    CHECK(to_string(finding(report).culprits) == "0-1");
    CHECK(finding(report).at->call.op == "recv");
    CHECK_THAT(finding(report).cause, StartsWith("each of the two has an isend"));
    CHECK_FALSE(finding(report).repair);
  }
}

TEST_CASE("two ranks that receive first wait for each other", "[messages][fiber]") {
  for (const Job& job : both_jobs) {
    const Report report = job.run(2, [&](Rank rank) {
      recv(job.number(), 1 - rank);
      send(job.number(), 1 - rank);
    });
    CHECK(kind(report) == "deadlock recv_recv");
    CHECK(to_string(finding(report).culprits) == "0-1");
  }
}

TEST_CASE("sends and receives in orders that do not fit are told apart from cycles of one kind",
          "[messages][fiber]") {
  const Report tags = gloo_job.run(2, [](Rank rank) {
    for (const std::int32_t tag : {1, 2}) {
      if (rank == 0) {
        send(gloo_job.number(), 1, {.tag = tag});
      } else {
        recv(gloo_job.number(), 0, {.tag = 3 - tag});
      }
    }
  });
  CHECK(kind(tags) == "deadlock p2p_order");
  CHECK(finding(tags).at->call.tag == 1);
  const Report ring =
      nccl_job.run(3, [](Rank rank) {  // 0 sends to 1, which receives from 2, which receives from 0
        if (rank == 0) {
          send(nccl_job.number(), 1);
          send(nccl_job.number(), 2);
        } else if (rank == 1) {
          recv(nccl_job.number(), 2);
          recv(nccl_job.number(), 0);
        } else {
          recv(nccl_job.number(), 0);
          send(nccl_job.number(), 1);
        }
      });
  CHECK(kind(ring) == "deadlock p2p_order");
  CHECK(to_string(finding(ring).culprits) == "0-2");
}

TEST_CASE("a message and a collective in crossed order are a crossing", "[messages][fiber]") {
  for (const Job& job : both_jobs) {
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
  for (const Job& job : both_jobs) {
    const Report report = job.run(2, [&](Rank rank) {
      for (int i = 0; i < 3 - rank; ++i) {
        rank == 0 ? send(job.number(), 1) : static_cast<void>(recv(job.number(), 0));
      }
    });
    CHECK(kind(report) == "deadlock unmatched_send");
    CHECK(to_string(finding(report).culprits) == "1");
    CHECK(finding(report).at->call.seq == 2);
    CHECK(to_string(finding(report).at->waiting) == "0");
    CHECK(finding(report).headline == "no rank receives what rank 0 sends to rank 1 (send #2 on world)");
  }
}

TEST_CASE("a receive that nobody sends to is the sender's omission", "[messages][fiber]") {
  for (const Job& job : both_jobs) {
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
  const Report report = gloo_job.run(3, [](Rank rank) {
    if (rank == 1) {
      recv(gloo_job.number());
    }
  });
  CHECK(kind(report) == "deadlock unmatched_recv");
  CHECK(to_string(finding(report).culprits) == "0,2");
  CHECK(finding(report).at->call.peer == -1);
  CHECK(finding(report).headline.find("from anyone") != std::string::npos);
}

TEST_CASE("a peer that raises leaves the other end of its message waiting", "[messages][fiber]") {
  for (const Job& job : both_jobs) {
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

TEST_CASE("a pending irecv is not what a rank hangs in", "[messages][fiber]") {
  for (const Job& job : both_jobs) {
    const Report report = job.run_eagerly(3, [&](Rank rank) {
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

TEST_CASE("a message waits for its timeout, and its rank for an error", "[messages][fiber]") {
  Options options = gloo_job.options(2);
  options.timeout = 2 * second;
  const Report report = run(options, [](Rank rank) { send(gloo_job.number(), 1 - rank); });
  CHECK(kind(report) == "deadlock send_send");
  CHECK(report.of(0).state == State::raised);
  CHECK(report.of(0).exception.find("Timed out waiting 2000ms") != std::string::npos);
  CHECK(report.simulated_time == 2 * second);
}

TEST_CASE("a thousand ranks that all send first are one cycle", "[messages][fiber]") {
  const Report report = nccl_job.run(1000, [](Rank rank) {
    send(nccl_job.number(), next_of(rank));
    recv(nccl_job.number(), previous_of(rank));
  });
  CHECK(kind(report) == "deadlock send_send");
  CHECK(to_string(finding(report).culprits) == "0-999");
}

// Every rank but the first receives from the one before, and every rank but the last sends to the next. `leaves_out`:
// whether rank 2 does not send in the last round, or the last rank receives once more than it is sent.
Report chain(const Job& job, bool leaves_out) {
  return job.run(4, [&](Rank rank) {
    for (int round = 0; round < (rank == 3 && !leaves_out ? 5 : 4); ++round) {
      if (rank > 0) {
        recv(job.number(), rank - 1);
      }
      if (rank < 3 && !(leaves_out && rank == 2 && round == 3)) {
        send(job.number(), rank + 1);
      }
    }
    barrier();
  });
}

TEST_CASE("a rank whose loop has ended has not left out a message that its loop would not have sent next",
          "[messages][fiber]") {
  CHECK(finding(chain(gloo_job, false)).suspects.front() == 3);
  CHECK(finding(chain(gloo_job, true)).suspects.front() == 2);
}

}  // namespace rollcall::sim::messages_hang_test
