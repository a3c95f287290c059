#pragma once

// Corrections from rows measured on the machine itself. For each operation, the smallest and the largest row give a
// constant and a factor, measured = constant + factor * model, and the differences that the rows between them still
// have are spread over the sizes. Two rows are worth more than any preset: docs/latency.md.

#include <cstdint>
#include <vector>

#include "sim/c10d/op.h"

namespace rollcall::cost {

struct Cluster;

// One row of a benchmark's table.
struct Measurement {
  OpKind kind = OpKind::all_reduce;
  int ranks = 2;
  int nodes = 1;
  std::int64_t bytes = 0;  // as in Call
  double time = 0;         // microseconds

  friend bool operator==(const Measurement&, const Measurement&) = default;
};

// The correction of one operation, on groups in one node or across several.
struct Correction {
  struct Anchor {
    std::int64_t bytes = 0;
    double factor = 1;

    friend bool operator==(const Anchor&, const Anchor&) = default;
  };

  OpKind kind = OpKind::all_reduce;
  bool several_nodes = false;
  double constant = 0;  // microseconds
  double factor = 1;
  std::vector<Anchor> anchors;  // by size; between them the factor follows the logarithm of the size

  double apply(double modeled, std::int64_t bytes) const;

  friend bool operator==(const Correction&, const Correction&) = default;
};

// A row and the model's time for it (Prediction::base).
struct ModeledRow {
  std::int64_t bytes = 0;
  double modeled = 0;  // microseconds
  double measured = 0;
};
// `rows` has at least one row; rows of the same size count as their mean.
Correction fit_correction(OpKind kind, bool several_nodes, std::vector<ModeledRow> rows);

// One for each operation and kind of group among the rows; by operation. Rows without a time or size are left out.
std::vector<Correction> corrections_of(const Cluster& cluster, const std::vector<Measurement>& rows);

// The correction for a call: that of its own operation, else of the first other one on such groups; null if none.
const Correction* correction_for(const std::vector<Correction>& corrections, OpKind kind, bool several_nodes);

// The absolute errors, as fractions, of each row's prediction: without corrections, with those from all rows, and with
// those from all rows but this one.
struct RowErrors {
  double before = 0;
  double after = 0;
  double left_out = 0;
};
std::vector<RowErrors> errors_of(const Cluster& cluster, const std::vector<Measurement>& rows);

}  // namespace rollcall::cost
