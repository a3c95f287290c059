#pragma once

// Times that benchmarks print: nccl-tests' text and JSON, PARAM's comms benchmark, the tables of published results that
// tests/data has, and several such tables in one file, as `real --calibrate` leaves them.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/c10d/op.h"
#include "sim/cost/calibration.h"

namespace rollcall::measured {

struct BenchRow {
  std::int64_t bytes = 0;
  double time = 0;              // microseconds; of in place and out of place the shorter one
  std::vector<double> ranks{};  // of each rank, where the benchmark says
  std::uint32_t line = 0;       // in the file; 0: not known
};

// One operation's rows in one file.
struct BenchTable {
  std::string file;
  OpKind op = OpKind::all_reduce;
  int ranks = 0;  // 0: the file does not say
  int nodes = 0;
  std::vector<BenchRow> rows;
};

// The tables of a file, at least one. Throws InvalidScenario for a file that has none.
std::vector<BenchTable> read_bench_tables(const std::string& path);

// nccl-tests' names and torch's: "alltoall", "all_reduce".
std::optional<OpKind> op_of_benchmark(std::string_view name);

// What a model is corrected by. What files do not say of ranks and nodes is the whole cluster's.
std::vector<cost::Measurement> measurements_of(const std::vector<BenchTable>& tables,
                                               const cost::Cluster& cluster);

}  // namespace rollcall::measured
