#pragma once

// The published nccl-tests tables of tests/data/nccl_tables, each row beside what is predicted for it.

#include <optional>
#include <string>
#include <vector>

#include "sim/cost/group_cost.h"

namespace rollcall::latency {

struct MeasuredRow {
  std::int64_t bytes = 0;
  double measured = 0;   // microseconds: the better of in place and out of place
  double predicted = 0;  // microseconds: the model's
};

struct MeasuredTable {
  std::string file;     // without folder and extension
  std::string system;   // tables of one system share it: they are left out of a fit together
  std::string cluster;  // the preset that stands for it
  OpKind op = OpKind::all_reduce;
  int compute_capability = 0;
  bool has_nvlink = false;
  bool by_nccl = true;            // false: the model is ours
  bool is_forced = false;         // NCCL_ALGO or NCCL_PROTO was set
  std::vector<MeasuredRow> rows;  // without those that the model excludes
};

// By file name. Throws std::runtime_error, with the file's name, for one that cannot be understood.
std::vector<MeasuredTable> measured_tables(const std::string& folder);

}  // namespace rollcall::latency
