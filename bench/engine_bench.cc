// What the engine costs per (rank x collective), beside the floor: the same collectives on
// Boost.Fiber alone. Both are measured in one process, by turns, and compared as a ratio.
//
//   engine_bench                            1,000 to 100,000 ranks
//   engine_bench --million                  and 1,000,000, which takes 8 GiB and a minute
//   engine_bench --benchmark_filter=:1000/  Google Benchmark's own options work too

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <variant>
#include <vector>

#include "bench/fiber_floor.h"
#include "bench/measure.h"
#include "sim/base/expects.h"
#include "sim/c10d/rank_context.h"
#include "sim/dist.h"
#include "sim/engine/simulate.h"

namespace rollcall::bench {

namespace {

// The engine with matching and judging on and the timeline off: what a user's `rollcall run` does.
Sample measure_engine(Rank ranks, std::int64_t collectives) {
  Probe probe(ranks, collectives);
  Report report = sim::run({.world_size = ranks, .backend = "gloo"}, [&](Rank) {
    Tensor tensor = Tensor::zeros({1});  // zeros: any number of sums stays finite
    all_reduce(tensor);
    probe.started();
    for (std::int64_t i = 0; i < collectives; ++i) {
      all_reduce(tensor);
    }
    probe.finished();
  });
  expects(std::holds_alternative<Completed>(report.verdict), "the measured program completes");
  return probe.sample();
}

// 2,000 calls of every rank in flight at once, over 3 groups and 4 streams, and then waited for: NCCL's way.
Sample measure_streams(Rank ranks, std::int64_t calls) {
  Probe probe(ranks, calls);
  sim::Options options{.world_size = ranks, .backend = "nccl"};
  options.groups = {{"everyone", {}}, {"evens", {}}, {"odds", {}}};
  for (Rank rank = 0; rank < ranks; ++rank) {
    options.groups[0].ranks.push_back(rank);
    options.groups[rank % 2 == 0 ? 1 : 2].ranks.push_back(rank);
  }
  Report report = sim::run(options, [&](Rank rank) {
    const std::array groups = {world(), find_group("everyone"), find_group(rank % 2 == 0 ? "evens" : "odds")};
    const std::array streams = {current_stream(), new_stream(), new_stream(), new_stream()};
    const Tensor tensor = Tensor::zeros({1}, Dtype::float32, this_rank().device);
    std::vector<Work> works(static_cast<std::size_t>(calls));
    barrier();
    probe.started();
    for (std::size_t i = 0; i < works.size(); ++i) {
      const StreamScope scope(streams[i % streams.size()]);
      works[i] = all_reduce(tensor, {.group = groups[i % groups.size()], .async_op = true});
    }
    for (const Work& work : works) {
      work.wait();
    }
    synchronize();
    probe.finished();
  });
  expects(std::holds_alternative<Completed>(report.verdict), "the measured program completes");
  return probe.sample();
}

struct Pair {
  Sample floor;
  Sample engine;
};

// Of every number of ranks, one pair per repetition. Filled by the benchmarks, read by the summary.
std::map<std::int64_t, std::vector<Pair>> measured;

template <Sample (*measure)(Rank, std::int64_t)>
void beside_the_floor(benchmark::State& state) {
  const auto ranks = static_cast<Rank>(state.range(0));
  Pair pair;
  for (auto _ : state) {
    pair = {.floor = measure_fiber_floor(ranks, state.range(1)), .engine = measure(ranks, state.range(1))};
    state.SetIterationTime(pair.engine.ns_per_op * 1e-9);  // so that the time column is the figure
  }
  state.counters["floor_ns"] = pair.floor.ns_per_op;
  state.counters["engine_ns"] = pair.engine.ns_per_op;
  state.counters["ratio"] = pair.engine.ns_per_op / pair.floor.ns_per_op;
  if constexpr (measure == measure_engine) {
    measured[ranks].push_back(pair);
  }
}

template <Sample (*measure)(Rank, std::int64_t)>
auto* add_size(const char* name, std::int64_t ranks, std::int64_t collectives) {
  return benchmark::RegisterBenchmark(name, beside_the_floor<measure>)
      ->ArgNames({"ranks", "collectives"})
      ->Args({ranks, collectives})
      ->UseManualTime()
      ->Iterations(1)
      ->ReportAggregatesOnly();
}

template <typename Projection>
double median_of(const std::vector<Pair>& pairs, Projection projection) {
  std::vector<double> values;
  for (const Pair& pair : pairs) {
    values.push_back(projection(pair));
  }
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// What the engine may cost, as a multiple of the floor. Nothing fails when it costs more: the table
// says so, and whoever changed the engine reads it.
const char* judge(std::int64_t ranks, double ratio) {
  static const std::map<std::int64_t, double> ratio_max = {{1'000, 3}, {100'000, 2}};
  auto bar = ratio_max.find(ranks);
  if (bar == ratio_max.end()) {
    return "";
  }
  return ratio <= bar->second ? "within" : "OVER";
}

void print_summary() {
  std::printf("\nall_reduce of one float32; medians; CPU time of this process\n");
  std::printf("%10s | %s | %s | %s\n", "", "ns per (rank x collective)     ", "ns to create a rank",
              "bytes per rank");
  std::printf("%10s | %7s %7s %6s %8s | %9s %9s | %7s %7s\n", "ranks", "floor", "engine", "ratio", "bar",
              "floor", "engine", "floor", "engine");
  for (const auto& [ranks, pairs] : measured) {
    double ratio = median_of(pairs, [](const Pair& p) { return p.engine.ns_per_op / p.floor.ns_per_op; });
    std::printf("%10lld | %7.1f %7.1f %6.2f %8s | %9.0f %9.0f | %7.0f %7.0f\n", static_cast<long long>(ranks),
                median_of(pairs, [](const Pair& p) { return p.floor.ns_per_op; }),
                median_of(pairs, [](const Pair& p) { return p.engine.ns_per_op; }), ratio,
                judge(ranks, ratio), median_of(pairs, [](const Pair& p) { return p.floor.ns_to_create; }),
                median_of(pairs, [](const Pair& p) { return p.engine.ns_to_create; }),
                median_of(pairs, [](const Pair& p) { return p.floor.bytes_per_rank; }),
                median_of(pairs, [](const Pair& p) { return p.engine.bytes_per_rank; }));
  }
}

int run(std::vector<char*> arguments) {
  add_size<measure_engine>("all_reduce", 1'000, 2'000);
  add_size<measure_engine>("all_reduce", 10'000, 200);
  add_size<measure_engine>("all_reduce", 100'000, 20);
  add_size<measure_streams>("in_flight", 1'000, 2'000);
  auto is_million = [](const char* word) { return std::strcmp(word, "--million") == 0; };
  if (std::erase_if(arguments, is_million) != 0) {
    add_size<measure_engine>("all_reduce", 1'000'000, 10)->Repetitions(3);
  }
  char default_repetitions[] = "--benchmark_repetitions=9";
  arguments.insert(arguments.begin() + 1, default_repetitions);  // first, so that the user's own wins

  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) {
    return 1;
  }
  benchmark::RunSpecifiedBenchmarks();
  print_summary();
  return 0;
}

}  // namespace

}  // namespace rollcall::bench

int main(int argc, char** argv) { return rollcall::bench::run({argv, argv + argc}); }
