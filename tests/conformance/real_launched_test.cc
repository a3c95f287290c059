// Runs whose ranks a launcher starts: the processes know only their rank and the master's address.

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <new>
#include <stdexcept>
#include <thread>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "real/launch/hub.h"
#include "real/launch/launch.h"
#include "real/process/process.h"
#include "real/rank/encode_store.h"
#include "real/rank/greeting.h"
#include "real/rank/sockets.h"
#include "sim/dist.h"
#include "tests/catch.h"
#include "tests/conformance/real_runs.h"

namespace rollcall::real_launched_test {
namespace {

// Returns a port that is unused now, and that no other process gets meanwhile: it is below the range from which the
// system assigns ports on request, as it does to the ranks of other tests.
std::uint16_t free_port() {
  constexpr int lowest = 20'000;
  constexpr int count = 10'000;
  for (int attempt = 0; attempt < count; ++attempt) {
    const int port = lowest + (::getpid() + attempt) % count;
    try {
      real::listen_on("127.0.0.1", static_cast<std::uint16_t>(port));
      return static_cast<std::uint16_t>(port);
    } catch (const std::runtime_error&) {  // taken
    }
  }
  FAIL("every port is taken");
  return 0;
}

// Runs the program as a launcher would start it, in `ranks` processes. Rank 0 is this process.
real::Run launch_run(Rank ranks, const real::Program& program,
                     const std::function<void(std::uint16_t)>& stranger) {
  const real::Options options{.world_size = ranks, .patience = 300 * millisecond};
  real::LaunchedRank place{.launcher = "test", .world_size = ranks, .master_port = free_port()};
  place.token = "a secret of this test";
  real::ChildProcess visitor([&] {
    stranger(place.master_port);
    ::_exit(0);
  });
  std::vector<real::ChildProcess> others;
  for (place.rank = 1; place.rank < ranks; ++place.rank) {
    others.emplace_back([&] { ::_exit(real::run_launched(options, program, place).has_value() ? 1 : 0); });
  }
  place.rank = 0;
  const std::optional<real::Run> run = real::run_launched(options, program, place);
  for (real::ChildProcess& other : others) {
    CHECK(WEXITSTATUS(other.wait()) == 0);
  }
  CHECK(visitor.wait() == 0);
  REQUIRE(run.has_value());
  return *run;
}

Report launch(Rank ranks, const real::Program& program) {
  return launch_run(ranks, program, [](std::uint16_t) {}).report;
}

// Serves until the process has ended; returns the status of waitpid.
int serve_until_end(real::Hub& hub, real::ChildProcess& process) {
  const real::Descriptor end = process.watch();
  for (pollfd ended = {end.number(), POLLIN, 0}; ::poll(&ended, 1, 10) == 0;) {
    hub.serve();
  }
  return process.wait();
}

// Returns the next frame from the hub; nothing if the hub has closed the connection.
std::optional<real::Frame> heard(const real::Descriptor& hub) {
  try {
    return real::receive_frame(hub);
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
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

TEST_CASE("a launched rank that never comes is named by rank 0", "[real]") {
  if (!test::has_gloo()) {
    return;
  }
  const real::Options options{.world_size = 2, .connecting = 1 * second};
  const real::LaunchedRank place{
      .launcher = "test", .world_size = 2, .master_port = free_port(), .token = "a secret of this test"};
  const Report report = real::run_launched(
                            options, [](Rank) { barrier(); }, place)
                            ->report;
  REQUIRE(kind_of(report.verdict) == FindingKind::never_connected);
  CHECK(finding_of(report.verdict)->culprits == RankSet{1});
  CHECK(finding_of(report.verdict)->headline == "rank 1 did not come within 1 s: no rank could begin");
  CHECK(report.of(0).exception.empty());
  CHECK(report.of(1).exception == "did not come");
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

// Each of these ended rank 0, or wrote the verdict, when connections were not authenticated.
TEST_CASE("strangers at the master's address neither end a launched run nor change its verdict", "[real]") {
  if (!test::has_gloo()) {
    return;
  }
  real::Record finish;
  finish.kind = real::Record::Kind::finish;
  StoreCall without_key;
  without_key.kind = StoreCall::Kind::set;
  const std::string as_rank_1 = real::frame({real::FrameKind::log, "1", {}});
  const std::vector<std::string> attacks = {
      as_rank_1 + real::encode({}) + real::encode(finish),
      as_rank_1 + std::string(40, '\x7f'),
      real::frame({real::FrameKind::call, "words", encode_value(without_key)}),
      real::frame({real::FrameKind::proof, std::string(32, 'n'), std::string(32, 'p')}),
      std::string("\x05\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 12),
      "GET / HTTP/1.1\r\n\r\n",
      std::string(100'000, 'x'),
  };
  // Shared by all processes.
  void* const memory =
      ::mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  auto* const strangers_have_been = new (memory) std::atomic<bool>(false);
  const real::Run run = launch_run(
      2,
      [&](Rank rank) {
        while (!strangers_have_been->load()) {
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        const Tensor tensor = Tensor::full({4}, rank + 1);
        all_reduce(tensor);
        print(to_string(tensor));
      },
      [&](std::uint16_t port) {
        for (const std::string& attack : attacks) {
          const real::Descriptor hub = real::connect_to("127.0.0.1", port);
          ::send(hub.number(), attack.data(), attack.size(), MSG_NOSIGNAL);
          heard(hub);  // the challenge
          if (heard(hub)) {
            ::_exit(1);  // it was welcome
          }
        }
        strangers_have_been->store(true);
      });
  ::munmap(memory, sizeof(std::atomic<bool>));
  CHECK(run.log.refused == static_cast<int>(attacks.size()));
  CHECK(verdict_word(run.report.verdict) == "ok");
  REQUIRE(run.report.output.size() == 2);
  CHECK(run.report.output.front().text == "tensor([3., 3., 3., 3.])");
}

TEST_CASE("without a secret, the processes of one user still know each other", "[real]") {
  const std::uint16_t port = free_port();
  const real::RunClock clock;
  real::Hub hub(clock);
  hub.listen("127.0.0.1", port, "");
  real::ChildProcess own([&] {
    real::greet_hub(real::connect_to("127.0.0.1", port), "");
    ::_exit(0);
  });
  CHECK(serve_until_end(hub, own) == 0);
  CHECK(hub.refused() == 0);
}

TEST_CASE("a rank with another secret is turned away and told why", "[real]") {
  const std::uint16_t port = free_port();
  const real::RunClock clock;
  real::Hub hub(clock);
  hub.listen("127.0.0.1", port, "the secret of rank 0");
  real::ChildProcess other([&] {
    try {
      real::greet_hub(real::connect_to("127.0.0.1", port), "the secret of another");
    } catch (const std::runtime_error& error) {
      ::_exit(std::string(error.what()).find("is ROLLCALL_TOKEN the same everywhere") != std::string::npos
                  ? 0
                  : 2);
    }
    ::_exit(1);
  });
  CHECK(serve_until_end(hub, other) == 0);
  CHECK(hub.refused() == 1);
}

}  // namespace rollcall::real_launched_test
