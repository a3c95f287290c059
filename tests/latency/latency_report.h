#pragma once

// docs/latency.md: what the model is, and how far from measurements it is.

#include <string>
#include <vector>

#include "tests/latency/measured_tables.h"

namespace rollcall::latency {

// Median absolute errors, as fractions, over all rows that count for the fit.
struct Errors {
  double model = 0;
  double fitted = 0;    // the residuals have seen these tables
  double held_out = 0;  // each system with residuals that have not seen it
  std::size_t rows = 0;
};
Errors errors_of(const std::vector<MeasuredTable>& tables);

std::string latency_page(const std::vector<MeasuredTable>& tables);

}  // namespace rollcall::latency
