// Real processes that create groups, use the store and run monitored_barrier: they do the same as simulated ranks,
// whether or not the program is right.

#include <fmt/core.h>

#include "sim/dist.h"
#include "tests/catch.h"
#include "tests/conformance/real_runs.h"

namespace rollcall::real_host_calls_test {
namespace {

struct NamedBody {
  const char* name;
  void (*body)(Rank);
};

Tensor own_number(Rank rank) { return Tensor::full({4}, rank + 1); }

void work_in_halves(Rank rank) {
  const Rank half = get_world_size() / 2;
  RankList low;
  RankList high;
  for (Rank other = 0; other < get_world_size(); ++other) {
    (other < half ? low : high).push_back(other);
  }
  const ProcessGroup first = new_group(low);
  const ProcessGroup second = new_group(high, {.name = "high"});
  const ProcessGroup& mine = rank < half ? first : second;
  all_reduce(own_number(rank), {.group = mine});
  all_reduce(own_number(rank));
  destroy_process_group(mine);
  all_reduce(own_number(rank));
}

void take_tickets(Rank rank) {
  const Store store;
  print(fmt::format("{}", store.add(fmt::format("ticket-{}", rank), rank + 1)));
  store.wait({fmt::format("ticket-{}", (rank + 1) % get_world_size())});
  if (rank == 0) {
    store.set("plan", "go");
  }
  print(store.get("plan"));
  barrier();
  print(fmt::format("{} {}", store.num_keys(), store.check({"plan", "none"})));
  print(store.compare_set("plan", "go", "went"));
}

void meet_under_watch(Rank rank) {
  all_reduce(own_number(rank));
  monitored_barrier();
  all_reduce(own_number(rank));
}

constexpr NamedBody programs[] = {
    {"halves", work_in_halves}, {"tickets", take_tickets}, {"watched", meet_under_watch}};

void forget_new_group(Rank rank) {
  if (rank != 1) {
    new_group(RankList{0, 1});
  }
}

void make_different_groups(Rank rank) { new_group(rank == 0 ? RankList{0} : RankList{1}); }

void wait_for_nobodys_key(Rank rank) {
  const Store store;
  if (rank == 0) {
    store.wait({"never"});
  }
  barrier();
}

void read_stale_plan(Rank rank) {
  const Store store;
  if (rank == 0) {
    store.set("plan", "old");
  }
  if (rank == 1) {
    store.get("plan", "new");
  }
}

void miss_the_watch(Rank rank) {
  if (rank != 1) {
    monitored_barrier({.timeout = 300 * millisecond});
  }
}

void miss_the_watch_for_all(Rank rank) {
  if (rank == 0) {
    monitored_barrier({.timeout = 300 * millisecond, .wait_all_ranks = true});
  }
}

constexpr NamedBody mistakes[] = {
    {"no new_group on rank 1", forget_new_group}, {"other lists", make_different_groups},
    {"nobody's key", wait_for_nobodys_key},       {"stale key", read_stale_plan},
    {"missing under watch", miss_the_watch},      {"all missing under watch", miss_the_watch_for_all}};

}  // namespace

TEST_CASE("groups, the store and monitored barriers are the same on real ranks", "[fiber][real]") {
  if (!test::has_gloo()) {
    return;
  }
  for (const Rank size : {2, 4, 8}) {
    for (const NamedBody& program : programs) {
      const std::string name = fmt::format("{} at {} ranks", program.name, size);
      CHECK(test::differences(name, {.world_size = size, .backend = "gloo"}, program.body) == "");
    }
  }
}

TEST_CASE("mistakes about groups and the store get the simulator's verdict on real ranks", "[fiber][real]") {
  if (!test::has_gloo()) {
    return;
  }
  for (const NamedBody& mistake : mistakes) {
    CHECK(test::differences(mistake.name, {.world_size = 3, .backend = "gloo"}, mistake.body) == "");
  }
}

}  // namespace rollcall::real_host_calls_test
