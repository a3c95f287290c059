#pragma once

// docs/latency.md: what the model is, and how far from measurements it is.

#include <functional>
#include <string>
#include <vector>

#include "tests/latency/measured_tables.h"

namespace rollcall::latency {

// A row and the errors of each way to predict it, as fractions.
struct JudgedRow {
  const MeasuredTable* table = nullptr;
  std::int64_t bytes = 0;
  double torch = -1;       // PyTorch's own estimator; -1: it has nothing for the row
  double alpha_beta = 0;   // latency and bandwidth fitted to the very table
  double tuner = 0;        // NCCL's own expectation
  double fitted = 0;       // the factors have seen the system
  double left_out = 0;     // they have not
  double two_points = -1;  // latency and bandwidth from the smallest and the largest row; -1: too few rows
  double two_rows = -1;    // what `left_out` is with, and these two rows
  bool is_inside = false;  // of the interval around left_out
  bool is_inside_calibrated = false;  // and around two_rows
};

// All rows that count for the fit.
std::vector<JudgedRow> judged_rows(const std::vector<MeasuredTable>& tables);

// The median of one of the errors over the rows that `wanted` has; of rows without it, none.
double median_error(const std::vector<JudgedRow>& rows, double JudgedRow::*error,
                    const std::function<bool(const JudgedRow&)>& wanted = {});

std::string latency_page(const std::vector<MeasuredTable>& tables);

}  // namespace rollcall::latency
