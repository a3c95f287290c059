#pragma once

// Times that benchmarks print: nccl-tests' text and JSON, PARAM's comms benchmark, the tables of published results in
// tests/data, and files with several of these tables, as `real --calibrate` writes them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/c10d/op.h"
#include "sim/cost/calibration.h"

namespace rollcall::measured {

struct BenchRow {
  std::int64_t bytes = 0;
  double time = 0;  // microseconds; the shorter one of in place and out of place
};

// One operation's rows in one file.
struct BenchTable {
  std::string file;
  OpKind op = OpKind::all_reduce;
  int ranks = 0;  // 0: the file does not say
  int nodes = 0;
  std::vector<BenchRow> rows;
};

// Returns the tables of files, at least one of each. Throws InvalidScenario if a file has none.
std::vector<BenchTable> read_bench_tables(const std::vector<std::string>& paths);

// Takes nccl-tests' names and torch's: "alltoall", "all_reduce".
std::optional<OpKind> op_of_benchmark(std::string_view name);

// The measurements that correct a model. Ranks and nodes that the files do not state are the whole cluster's.
std::vector<cost::Measurement> measurements_of(const std::vector<BenchTable>& tables,
                                               const cost::Cluster& cluster);

}  // namespace rollcall::measured
