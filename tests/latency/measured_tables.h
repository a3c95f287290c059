#pragma once

// The published nccl-tests tables of tests/data/nccl_tables and nccl_tables_2026, each row with its prediction.

#include <optional>
#include <string>
#include <vector>

#include "sim/cost/group_cost.h"
#include "sim/cost/residuals.h"

namespace rollcall::latency {

struct MeasuredRow {
  cost::Measurement measured;  // the better of in place and out of place
  cost::Prediction predicted;
  cost::Traits traits{};
  double busbw_factor = 1;
  std::optional<double> torch{};  // microseconds, from PyTorch's own estimator (torch_estimator.py)
};

struct MeasuredTable {
  std::string file;    // without folder and extension
  std::string system;  // tables of one system share it: they are left out of a fit together
  std::string name;    // of the cluster
  cost::Cluster cluster;
  OpKind op = OpKind::all_reduce;
  bool by_nccl = true;            // false: the model is ours
  bool is_forced = false;         // NCCL_ALGO or NCCL_PROTO was set
  bool is_ill = false;            // published as suspect
  std::vector<MeasuredRow> rows;  // without those that the model excludes
};

// True for NCCL's own collectives with its own choice, on healthy machines and with kernels that have residuals.
bool counts_for_fit(const MeasuredTable& table);

// Returns the tables by file name. Throws std::runtime_error, with the file's name, if one cannot be understood.
std::vector<MeasuredTable> measured_tables(const std::string& folder);
// Returns the tables of both folders below tests/data.
std::vector<MeasuredTable> all_measured_tables();

}  // namespace rollcall::latency
