#include "sim/engine/start_order.h"

#include <algorithm>
#include <set>

#include "tests/catch.h"

namespace rollcall::sim::start_order_test {

TEST_CASE("seed 0 starts ranks in order", "[start_order]") {
  CHECK(start_order(5, 0) == std::vector<Rank>{0, 1, 2, 3, 4});
  CHECK(start_order(1, 0) == std::vector<Rank>{0});
}

TEST_CASE("every seed starts every rank once", "[start_order]") {
  const std::vector<Rank> everyone = start_order(100, 0);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<Rank> order = start_order(100, seed);
    std::sort(order.begin(), order.end());
    CHECK(order == everyone);
  }
}

TEST_CASE("a seed is an order, and different seeds are different ones", "[start_order]") {
  CHECK(start_order(100, 7) == start_order(100, 7));
  std::set<std::vector<Rank>> orders;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    orders.insert(start_order(100, seed));
  }
  CHECK(orders.size() == 20);
}

TEST_CASE("a seed's order is the same on every machine", "[start_order]") {
  // Fixed values: the replay line of an old report must keep meaning the same run.
  CHECK(start_order(8, 1) == std::vector<Rank>{4, 3, 2, 7, 5, 6, 0, 1});
}

TEST_CASE("ranks fill a host's GPUs before the next host's", "[start_order]") {
  const Options options{.world_size = 16};
  CHECK(device_of_rank(options, 0) == Device{DeviceType::cuda, 0});
  CHECK(device_of_rank(options, 7) == Device{DeviceType::cuda, 7});
  CHECK(device_of_rank(options, 8) == Device{DeviceType::cuda, 0});
  CHECK(host_of_rank(options, 7) == 0);
  CHECK(host_of_rank(options, 8) == 1);
  const Options pairs{.world_size = 4, .ranks_per_host = 2};
  CHECK(device_of_rank(pairs, 3) == Device{DeviceType::cuda, 1});
  CHECK(host_of_rank(pairs, 3) == 1);
}

TEST_CASE("gloo's ranks live on the CPU, and given devices win", "[start_order]") {
  CHECK(device_of_rank({.world_size = 4, .backend = "gloo"}, 3) == cpu_device);
  const Options given{.world_size = 2, .backend = "gloo", .devices = {cpu_device, {DeviceType::cuda, 5}}};
  CHECK(device_of_rank(given, 1) == Device{DeviceType::cuda, 5});
}

}  // namespace rollcall::sim::start_order_test
