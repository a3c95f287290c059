#include "sim/fibers/rank_scheduler.h"

#include <exception>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/catch.h"

namespace rollcall::sim::rank_scheduler_test {
namespace {

std::vector<Rank> ascending(std::size_t ranks) {
  std::vector<Rank> order(ranks);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// Ranks on a scheduler. Nothing is checked while they run: their stacks are small, and a failed assertion would leave a
// rank with an exception.
struct Ranks {
  explicit Ranks(std::size_t ranks) : Ranks(ranks, ascending(ranks)) {}
  Ranks(std::size_t ranks, const std::vector<Rank>& order)
      : contexts(with_numbers(ranks)), scheduler(contexts, order) {}

  static std::vector<RankContext> with_numbers(std::size_t ranks) {
    std::vector<RankContext> contexts(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      contexts[rank].rank = static_cast<Rank>(rank);
    }
    return contexts;
  }
  void make_all_ready() {
    for (const RankContext& context : contexts) {
      scheduler.make_ready(context.rank);
    }
  }

  std::vector<RankContext> contexts;
  RankScheduler scheduler;
  std::vector<Rank> log;
};

void never() { throw std::logic_error("no rank parks, so nothing settles"); }

}  // namespace

TEST_CASE("ranks start in the given order", "[rank_scheduler][fiber]") {
  Ranks run(4, {2, 0, 3, 1});
  run.scheduler.run([&](Rank rank) { run.log.push_back(rank); }, never);
  CHECK(run.log == std::vector<Rank>{2, 0, 3, 1});
}

TEST_CASE("parked ranks continue in the order in which they became ready", "[rank_scheduler][fiber]") {
  Ranks run(3);
  run.scheduler.run(
      [&](Rank rank) {
        run.scheduler.park();
        run.log.push_back(rank);
      },
      [&] {
        for (const Rank rank : {1, 2, 0}) {
          run.scheduler.make_ready(rank);
        }
      });
  CHECK(run.log == std::vector<Rank>{1, 2, 0});
}

TEST_CASE("quiescence comes only when every rank is parked or done", "[rank_scheduler][fiber]") {
  Ranks run(5);
  int parked = 0;
  std::vector<int> parked_at_rest;
  run.scheduler.run(
      [&](Rank rank) {
        for (Rank i = 0; i < rank; ++i) {  // rank 0 never parks, rank 4 four times
          ++parked;
          run.scheduler.park();
          --parked;
        }
      },
      [&] {
        parked_at_rest.push_back(parked);
        const auto at_rest = static_cast<Rank>(parked);
        for (Rank rank = 5 - at_rest; rank < 5; ++rank) {
          run.scheduler.make_ready(rank);
        }
      });
  CHECK(parked_at_rest == std::vector<int>{4, 3, 2, 1});
}

TEST_CASE("quiescence is asked again until it has made somebody ready", "[rank_scheduler][fiber]") {
  Ranks run(1);
  int asked = 0;
  run.scheduler.run([&](Rank) { run.scheduler.park(); },
                    [&] {
                      if (++asked == 3) {
                        run.scheduler.make_ready(0);
                      }
                    });
  CHECK(asked == 3);
}

TEST_CASE("a rank may make another ready itself", "[rank_scheduler][fiber]") {
  Ranks run(2);
  run.scheduler.run(
      [&](Rank rank) {
        if (rank == 0) {
          run.scheduler.park();
        } else {
          run.scheduler.make_ready(0);
        }
        run.log.push_back(rank);
      },
      never);
  CHECK(run.log == std::vector<Rank>{1, 0});
}

TEST_CASE("the current rank is the one that runs, after every suspension", "[rank_scheduler][fiber]") {
  Ranks run(8);
  bool always_right = true;
  run.scheduler.run(
      [&](Rank rank) {
        for (int i = 0; i < 3; ++i) {
          always_right = always_right && this_rank().rank == rank && run.scheduler.running() == rank;
          run.scheduler.park();
          always_right = always_right && this_rank().rank == rank && run.scheduler.running() == rank;
        }
      },
      [&] { run.make_all_ready(); });
  CHECK(always_right);
}

TEST_CASE("nobody is the current rank while the engine works, or afterwards", "[rank_scheduler][fiber]") {
  Ranks run(2);
  bool nobody = true;
  run.scheduler.run([&](Rank) { run.scheduler.park(); },
                    [&] {
                      nobody = nobody && detail::current_rank == nullptr && run.scheduler.running() == -1;
                      run.make_all_ready();
                    });
  CHECK(nobody);
  CHECK(detail::current_rank == nullptr);
}

TEST_CASE("exceptions being handled belong to their rank", "[rank_scheduler][fiber]") {
  Ranks run(4);
  std::vector<std::string> rethrown(4);
  std::vector<int> uncaught(4, -1);
  run.scheduler.run(
      [&](Rank rank) {
        const auto mine = static_cast<std::size_t>(rank);
        try {
          try {
            throw std::runtime_error("of rank " + std::to_string(rank));
          } catch (...) {
            run.scheduler.park();
            if (rank == 2) {
              run.scheduler.park();  // ranks do not leave their clauses in stack order
            }
            throw;
          }
        } catch (const std::runtime_error& error) {
          uncaught[mine] = std::uncaught_exceptions();
          rethrown[mine] = error.what();
        }
      },
      [&, round = 0]() mutable {
        if (round++ == 0) {
          for (const Rank rank : {3, 0, 2, 1}) {
            run.scheduler.make_ready(rank);
          }
        } else {
          run.scheduler.make_ready(2);
        }
      });
  CHECK(rethrown == std::vector<std::string>{"of rank 0", "of rank 1", "of rank 2", "of rank 3"});
  CHECK(uncaught == std::vector<int>{0, 0, 0, 0});
}

namespace {

// Parks while its rank unwinds.
struct ParksInDestructor {
  ~ParksInDestructor() {
    scheduler.park();
    *uncaught = std::uncaught_exceptions();
  }
  RankScheduler& scheduler;
  int* uncaught;
};

}  // namespace

TEST_CASE("a rank may sleep in a destructor while it unwinds", "[rank_scheduler][fiber]") {
  Ranks run(3);
  std::vector<int> uncaught(3, -1);
  std::vector<std::string> caught(3);
  run.scheduler.run(
      [&](Rank rank) {
        const auto mine = static_cast<std::size_t>(rank);
        if (rank == 1) {  // this one does not unwind, and must not see that others do
          run.scheduler.park();
          uncaught[mine] = std::uncaught_exceptions();
          return;
        }
        try {
          const ParksInDestructor parks{run.scheduler, &uncaught[mine]};
          throw std::runtime_error(std::to_string(rank));
        } catch (const std::runtime_error& error) {
          caught[mine] = error.what();
        }
      },
      [&] { run.make_all_ready(); });
  CHECK(uncaught == std::vector<int>{1, 0, 1});
  CHECK(caught == std::vector<std::string>{"0", "", "2"});
}

TEST_CASE("ten thousand ranks take turns", "[rank_scheduler][fiber]") {
  constexpr std::size_t ranks = 10'000;
  Ranks run(ranks);
  std::int64_t turns = 0;
  run.scheduler.run(
      [&](Rank) {
        for (int i = 0; i < 3; ++i) {
          run.scheduler.park();
          ++turns;
        }
      },
      [&] { run.make_all_ready(); });
  CHECK(turns == 3 * ranks);
}

TEST_CASE("one scheduler after the other on one thread, and two at once on two", "[rank_scheduler][fiber]") {
  const auto turns = [] {
    Ranks run(100);
    int count = 0;
    run.scheduler.run(
        [&](Rank) {
          run.scheduler.park();
          ++count;
        },
        [&] { run.make_all_ready(); });
    return count;
  };
  CHECK(turns() == 100);
  CHECK(turns() == 100);
  int first = 0;
  int second = 0;
  std::thread a([&] { first = turns(); });
  std::thread b([&] { second = turns(); });
  a.join();
  b.join();
  CHECK(first == 100);
  CHECK(second == 100);
}

}  // namespace rollcall::sim::rank_scheduler_test
