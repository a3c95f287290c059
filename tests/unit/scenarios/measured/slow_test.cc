#include "scenarios/measured/slow.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/core.h>

#include "sim/cost/group_cost.h"
#include "sim/cost/presets.h"
#include "tests/catch.h"

namespace rollcall::measured::slow_test {

namespace {

constexpr int gpus = 8;

// Gives the same numbers on every machine, unlike the standard library's distributions.
class Dice {
 public:
  explicit Dice(std::uint32_t seed) : engine_(seed) {}

  int below(int end) { return static_cast<int>(engine_() % static_cast<std::uint32_t>(end)); }
  double fraction() { return static_cast<double>(engine_() >> 8) / 16'777'216.0; }
  // Approximates a normal distribution by the sum of four numbers.
  double normal() { return (fraction() + fraction() + fraction() + fraction() - 2) * std::sqrt(3.0); }

 private:
  std::mt19937 engine_;
};

enum class Fault : std::uint8_t { none, half_nic, link_down, slow_host, throttled_gpu };

// The recorded calls of a job on nodes of eight H100: tensor-parallel groups within nodes, each rank's exchange with
// its counterparts on the next two nodes, and calls of all ranks. One part is slow.
class Job {
 public:
  Job(std::uint32_t seed, Fault fault) : dice_(seed), fault_(fault), nodes_(4 + 2 * dice_.below(5)) {
    host_ = dice_.below(nodes_);
    rank_ = host_ * gpus + dice_.below(gpus);
    for (int rank = 0; rank < nodes_ * gpus; ++rank) {
      timings_.ranks.push_back({fmt::format("{}", rank), rank / gpus});
    }
    for (int node = 0; node < nodes_; ++node) {
      timings_.hosts.push_back(fmt::format("node {}", node));
    }
    cluster_ = cost::find_cluster(fmt::format("h100-{}x8", nodes_)).cluster.value();
    run();
  }

  const Timings& timings() const { return timings_; }

  std::string name_of_ill() const {
    switch (fault_) {
      case Fault::half_nic:
        return fmt::format("NIC of rank {} (node {})", rank_, host_);
      case Fault::link_down:
        return fmt::format("link between node {} and node {}", std::min(host_, next()),
                           std::max(host_, next()));
      case Fault::slow_host:
        return fmt::format("node {}", host_);
      case Fault::throttled_gpu:
        return fmt::format("rank {}", rank_);
      case Fault::none:
        break;
    }
    return {};
  }

 private:
  int next() const { return (host_ + 1) % nodes_; }

  void run() {
    std::vector<int> all;
    for (int rank = 0; rank < nodes_ * gpus; ++rank) {
      all.push_back(rank);
    }
    for (int step = 0; step < 3; ++step) {
      for (int node = 0; node < nodes_; ++node) {
        call(OpKind::all_reduce, 32 << 20, {all.begin() + node * gpus, all.begin() + (node + 1) * gpus});
        for (int local = 0; local < gpus; ++local) {
          for (const int distance : {1, 2}) {
            std::vector<int> pair{node * gpus + local, (node + distance) % nodes_ * gpus + local};
            std::ranges::sort(pair);
            call(OpKind::all_gather, 64 << 20, pair);
          }
        }
      }
      call(OpKind::all_reduce, 256 << 20, all);
    }
  }

  double slowness(const std::vector<int>& members) const {
    const bool crosses = members.front() / gpus != members.back() / gpus;
    const auto has_host = [&](int host) {
      return std::ranges::any_of(members, [host](int rank) { return rank / gpus == host; });
    };
    if (fault_ == Fault::half_nic && crosses && std::ranges::find(members, rank_) != members.end()) {
      return 2;
    }
    // Traffic is rerouted through another switch.
    return fault_ == Fault::link_down && members.size() == 2 && has_host(host_) && has_host(next()) ? 2.5 : 1;
  }

  void call(OpKind op, std::int64_t bytes, const std::vector<int>& members) {
    const int nodes = members.front() / gpus == members.back() / gpus ? 1
                      : static_cast<int>(members.size()) == 2         ? 2
                                                                      : nodes_;
    const cost::GroupCost group(cost::communicator_of(cluster_, static_cast<int>(members.size()), nodes));
    Timing timing{.op = op, .bytes = bytes, .members = members};
    timing.time =
        group.predict({.kind = op, .bytes = bytes})->fitted * slowness(members) * (1 + 0.05 * dice_.normal());
    std::vector<double> arrivals;
    for (const int rank : members) {
      double late = 10 * dice_.fraction();
      late += fault_ == Fault::slow_host && rank / gpus == host_ ? 300 : 0;
      late += fault_ == Fault::throttled_gpu && rank == rank_ ? 400 : 0;
      arrivals.push_back(late);
    }
    const double last = *std::ranges::max_element(arrivals);
    for (const double arrival : arrivals) {
      timing.waited.push_back(last - arrival);
    }
    timings_.calls.push_back(std::move(timing));
  }

  Dice dice_;
  Fault fault_;
  int nodes_;
  int host_ = 0;
  int rank_ = 0;
  cost::Cluster cluster_;
  Timings timings_;
};

// Returns in how many of the jobs the slow part, and only that, is named.
int named(Fault fault, int jobs) {
  int right = 0;
  for (int seed = 0; seed < jobs; ++seed) {
    const Job job(static_cast<std::uint32_t>(seed + 1), fault);
    const auto found = ill_parts(job.timings(), nullptr);
    right += fault == Fault::none ? (found.empty() ? 1 : 0)
                                  : (found.size() == 1 && found.front().name == job.name_of_ill() ? 1 : 0);
  }
  return right;
}

}  // namespace

TEST_CASE("a NIC at half its speed is named", "[slow]") { CHECK(named(Fault::half_nic, 100) >= 95); }
TEST_CASE("a link that is down is named", "[slow]") { CHECK(named(Fault::link_down, 100) >= 95); }
TEST_CASE("a slow host is named", "[slow]") { CHECK(named(Fault::slow_host, 100) >= 95); }
TEST_CASE("a throttled GPU is named", "[slow]") { CHECK(named(Fault::throttled_gpu, 100) >= 95); }
TEST_CASE("a healthy job names nothing", "[slow]") { CHECK(named(Fault::none, 100) == 100); }

}  // namespace rollcall::measured::slow_test
