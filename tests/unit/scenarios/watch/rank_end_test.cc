// Which rank of a watched job is named when the job has failed.

#include "scenarios/watch/rank_end.h"

#include <csignal>

#include "tests/catch.h"

namespace rollcall::watch::rank_end_test {

namespace {

// As waitpid reports an exit code, and a signal.
int exited(int code) { return code << 8; }
int killed(int signal) { return signal; }

RankEnd good(Rank rank) { return {rank, "exited", exited(0), true}; }
RankEnd failed(Rank rank) { return {rank, "exited with code 1", exited(1)}; }
RankEnd ended_by(Rank rank, int signal) { return {rank, "killed", killed(signal)}; }
RankEnd untold(Rank rank) { return {rank, "it left no exit status", std::nullopt}; }
RankEnd raised(Rank rank, RankEnd::Error error) {
  return {rank, "exited with code 1", exited(1), false, error};
}

}  // namespace

TEST_CASE("a job that failed has a rank that raised an error of its own, whoever ended first", "[watch]") {
  CHECK(line_of_failure({good(0), raised(2, RankEnd::Error::of_others), raised(1, RankEnd::Error::own)}, 8) ==
        "rank 1 ended: by an exception\n");
}

TEST_CASE("a rank that was killed failed, and one that the launcher has ended did not", "[watch]") {
  CHECK(line_of_failure({ended_by(2, SIGTERM), ended_by(1, SIGKILL)}, 8) == "rank 1 ended: killed\n");
  CHECK(line_of_failure({ended_by(2, SIGTERM), failed(3)}, 8) == "rank 3 ended: exited with code 1\n");
  CHECK(line_of_failure({ended_by(2, SIGTERM), ended_by(0, SIGTERM)}, 8) == "rank 2 ended: killed\n");
}

TEST_CASE("a rank that was done before the others lost it is named, but not beside an exit code", "[watch]") {
  const RankEnd victim = raised(2, RankEnd::Error::of_others);
  CHECK(line_of_failure({good(0), victim}, 8) == "rank 0 exited: exited\n");
  CHECK(line_of_failure({good(0), good(3), ended_by(1, SIGTERM)}, 8) == "rank 0 exited: exited\n");
  CHECK(line_of_failure({good(0), failed(1), victim}, 8).empty());
  CHECK(line_of_failure({victim}, 8).empty());
  CHECK(line_of_failure({good(0), good(1)}, 8).empty());
  CHECK(line_of_failure({}, 8).empty());
}

TEST_CASE("a job whose ranks were all ended from outside has no rank that failed", "[watch]") {
  CHECK(line_of_failure({ended_by(2, SIGTERM), ended_by(0, SIGTERM), untold(1)}, 3).empty());
  CHECK(line_of_failure({ended_by(2, SIGTERM), ended_by(0, SIGTERM), failed(1)}, 3) ==
        "rank 1 ended: exited with code 1\n");
  CHECK(line_of_failure({ended_by(2, SIGTERM), ended_by(0, SIGTERM), good(1)}, 3) ==
        "rank 1 exited: exited\n");
}

TEST_CASE("an exit code says more than an exit status that the parent has taken", "[watch]") {
  CHECK(line_of_failure({untold(0), failed(1), failed(2)}, 8) == "rank 1 ended: exited with code 1\n");
  CHECK(line_of_failure({untold(0), untold(1)}, 8) == "rank 0 ended: it left no exit status\n");
}

TEST_CASE("while others run, the ranks that have ended are listed up to the first failure", "[watch]") {
  CHECK(lines_of_ended({good(0), ended_by(1, SIGKILL), ended_by(2, SIGTERM)}) ==
        "rank 0 exited: exited\nrank 1 ended: killed\n");
  CHECK(lines_of_ended({raised(1, RankEnd::Error::own), ended_by(2, SIGTERM)}).empty());
}

}  // namespace rollcall::watch::rank_end_test
