#include "real/process/forked_pool.h"

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/catch.h"

namespace rollcall::real::forked_pool_test {
namespace {

using Kind = Ending::Kind;

// The results of `count` pieces of work, in order of arrival.
struct Collected {
  std::vector<std::size_t> order;
  std::vector<Ending> endings;
};

Collected run_all(std::size_t count, const ForkLimits& limits, const ForkedPool::Work& work) {
  Collected all;
  const volatile std::sig_atomic_t never = 0;
  ForkedPool(limits, never).run(count, work, [&](std::size_t index, Ending ending) {
    all.order.push_back(index);
    all.endings.push_back(std::move(ending));
    return true;
  });
  return all;
}

bool has_children() { return ::waitpid(-1, nullptr, WNOHANG) >= 0; }

}  // namespace

TEST_CASE("results come in order, whichever piece ends first", "[process]") {
  const auto work = [](std::size_t index) {
    ::usleep(index % 3 == 0 ? 20'000 : 0);
    return std::to_string(index);
  };
  const Collected all = run_all(9, {.jobs = 4}, work);
  CHECK(all.order == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8});
  for (std::size_t i = 0; i < all.endings.size(); ++i) {
    CHECK(all.endings[i].result == std::to_string(i));
  }
  CHECK_FALSE(has_children());
}

TEST_CASE("a result may be larger than any pipe", "[process]") {
  const Collected all = run_all(1, {}, [](std::size_t) { return std::string(3'000'000, 'x'); });
  CHECK(all.endings.front().result == std::string(3'000'000, 'x'));
}

TEST_CASE("how one piece of work ends does not affect the others", "[process]") {
  const ForkLimits limits{.jobs = 2, .time = 100 * second, .memory_bytes = 200 * 1024 * 1024};
  const Collected all = run_all(6, limits, [](std::size_t index) -> std::string {
    switch (index) {
      case 0:
        std::raise(SIGSEGV);
        break;
      case 1:
        std::fputs("expectation failed: a queue is empty\n", stderr);
        std::abort();
      case 2:
        ::_exit(7);
      case 3:
        throw std::runtime_error("no such thing");
      case 4:
        for (std::string hoard;;) {
          hoard.append(10 * 1024 * 1024, 'x');
        }
      default:
        break;
    }
    return "fine";
  });
  REQUIRE(all.endings.size() == 6);
  CHECK(all.endings[0].kind == Kind::killed);
  CHECK(all.endings[0].number == SIGSEGV);
  CHECK(all.endings[1].kind == Kind::killed);
  CHECK(all.endings[1].number == SIGABRT);
  CHECK(all.endings[1].said == "expectation failed: a queue is empty\n");
  CHECK(all.endings[2].kind == Kind::exited);
  CHECK(all.endings[2].number == 7);
  CHECK(all.endings[3].kind == Kind::exited);
  CHECK(all.endings[3].said == "no such thing\n");
  CHECK(all.endings[4].kind == Kind::too_large);
  CHECK(all.endings[5].kind == Kind::returned);
  CHECK(all.endings[5].result == "fine");
  CHECK_FALSE(has_children());
}

TEST_CASE("work that does not end is ended when its time is over", "[process]") {
  const Collected all = run_all(2, {.jobs = 2, .time = second / 10}, [](std::size_t) -> std::string {
    for (;;) {
      ::pause();
    }
  });
  CHECK(all.endings[0].kind == Kind::too_slow);
  CHECK(all.endings[1].kind == Kind::too_slow);
  CHECK_FALSE(has_children());
}

TEST_CASE("when no more are wanted, those under way are ended", "[process]") {
  const volatile std::sig_atomic_t never = 0;
  std::size_t received = 0;
  const auto work = [](std::size_t index) -> std::string {
    while (index > 1) {
      ::pause();
    }
    return "";
  };
  ForkedPool({.jobs = 3}, never).run(9, work, [&](std::size_t, const Ending&) { return ++received < 2; });
  CHECK(received == 2);
  CHECK_FALSE(has_children());
}

TEST_CASE("an interruption hands out what is done and ends the rest", "[process]") {
  volatile std::sig_atomic_t interrupted = 0;
  std::vector<std::size_t> received;
  const auto work = [](std::size_t index) -> std::string {
    while (index == 1) {
      ::pause();
    }
    return "";
  };
  ForkedPool pool({.jobs = 2}, interrupted);
  pool.run(
      9, work,
      [&](std::size_t index, const Ending&) {
        received.push_back(index);
        return true;
      },
      [&](std::size_t, std::size_t done) { interrupted = done == 3 ? 1 : 0; });
  CHECK(received == std::vector<std::size_t>{0, 2, 3});
  CHECK_FALSE(has_children());
}

}  // namespace rollcall::real::forked_pool_test
