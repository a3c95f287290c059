// Runs whose ranks a launcher starts: processes that know only their place and the master's address.

#include <csignal>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "real/launch/launch.h"
#include "real/process/process.h"
#include "real/rank/sockets.h"
#include "sim/dist.h"
#include "tests/catch.h"
#include "tests/conformance/real_runs.h"

namespace rollcall {
namespace {

// One that nobody uses now.
std::uint16_t free_port() {
  const real::Descriptor listener = real::listen_on(0);
  sockaddr_in6 here = {};
  socklen_t size = sizeof here;
  REQUIRE(::getsockname(listener.number(), reinterpret_cast<sockaddr*>(&here), &size) == 0);
  return ntohs(here.sin6_port);
}

// As `ranks` processes started by a launcher. Rank 0 is this one.
Report launch(Rank ranks, const real::Program& program) {
  const real::Options options{.world_size = ranks, .patience = 300 * millisecond};
  real::LaunchedRank place{.launcher = "test", .world_size = ranks, .master_port = free_port()};
  std::vector<real::ChildProcess> others;
  for (place.rank = 1; place.rank < ranks; ++place.rank) {
    others.emplace_back([&] { ::_exit(real::run_launched(options, program, place).has_value() ? 1 : 0); });
  }
  place.rank = 0;
  const std::optional<real::Run> run = real::run_launched(options, program, place);
  for (real::ChildProcess& other : others) {
    CHECK(WEXITSTATUS(other.wait()) == 0);
  }
  REQUIRE(run.has_value());
  return run->report;
}

}  // namespace

TEST_CASE("launched ranks meet at the master's address and leave one report", "[real]") {
  if (!test::has_gloo()) {
    return;
  }
  const Report report = launch(3, [](Rank rank) {
    const Tensor tensor = Tensor::full({4}, rank);
    all_reduce(tensor);
    print(to_string(tensor));
  });
  CHECK(verdict_word(report.verdict) == "ok");
  REQUIRE(report.output.size() == 3);
  for (const OutputLine& line : report.output) {
    CHECK(line.text == "tensor([3., 3., 3., 3.])");
  }
}

TEST_CASE("a launched rank that is missing is named by rank 0", "[real]") {
  if (!test::has_gloo()) {
    return;
  }
  const Report report = launch(3, [](Rank rank) {
    if (rank != 1) {
      barrier();
    }
  });
  CHECK(std::get<Deadlock>(report.verdict).finding.culprits == RankSet{1});
}

TEST_CASE("a launched rank that is killed is named, wherever it ran", "[real]") {
  if (!test::has_gloo()) {
    return;
  }
  const Report report = launch(3, [](Rank rank) {
    all_reduce(Tensor::ones({4}));
    if (rank == 2) {
      ::kill(::getpid(), SIGKILL);
    }
    all_reduce(Tensor::ones({4}));
  });
  CHECK(report.of(2).state == RankClass::State::crashed);
  CHECK_THAT(report.of(2).exception, StartsWith("SIGKILL"));
  CHECK(finding_of(report.verdict)->culprits == RankSet{2});
}

}  // namespace rollcall
