// Runs whose ranks a launcher starts: processes that know only their place and the master's address.

#include <csignal>
#include <stdexcept>

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

// One that nobody uses now, and that nobody is given meanwhile: below the range from which a system gives ports to
// those that ask for any, as the ranks of other tests do.
std::uint16_t free_port() {
  constexpr int lowest = 20'000;
  constexpr int count = 10'000;
  for (int attempt = 0; attempt < count; ++attempt) {
    const int port = lowest + (::getpid() + attempt) % count;
    try {
      real::listen_on(static_cast<std::uint16_t>(port));
      return static_cast<std::uint16_t>(port);
    } catch (const std::runtime_error&) {  // taken
    }
  }
  FAIL("every port is taken");
  return 0;
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
  REQUIRE(verdict_word(report.verdict) == "deadlock");
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
