#pragma once

// Writes docs/latency.md, which says what the model is, and how far it is from measurements.

#include <functional>
#include <string>
#include <vector>

#include "tests/latency/measured_tables.h"

namespace rollcall::latency {

// A row with the error of each way to predict it, as a fraction.
struct JudgedRow {
  const MeasuredTable* table = nullptr;
  std::int64_t bytes = 0;
  double torch = -1;       // PyTorch's own estimator; -1: it has no estimate
  double alpha_beta = 0;   // latency and bandwidth fitted to this table
  double tuner = 0;        // NCCL's own expectation
  double fitted = 0;       // the factors have seen the system
  double left_out = 0;     // they have not
  double two_points = -1;  // latency and bandwidth from the smallest and the largest row; -1: too few rows
  double two_rows = -1;    // like left_out, plus these two rows
  bool is_inside = false;  // in the interval around left_out
  bool is_inside_calibrated = false;  // and in that around two_rows
};

// Returns all rows that count for the fit.
std::vector<JudgedRow> judged_rows(const std::vector<MeasuredTable>& tables);

// Returns the median of one of the errors over the rows for which `wanted` holds, ignoring rows without that error.
double median_error(const std::vector<JudgedRow>& rows, double JudgedRow::*error,
                    const std::function<bool(const JudgedRow&)>& wanted = {});

std::string latency_page(const std::vector<MeasuredTable>& tables);

}  // namespace rollcall::latency
