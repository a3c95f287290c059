#pragma once

// How sim/cost/residuals was fitted, to be repeated: also without one system, to see what the residuals
// are worth where nothing was measured.

#include <string>
#include <vector>

#include "sim/cost/residuals.h"
#include "tests/latency/measured_tables.h"

namespace rollcall::latency {

struct ResidualFit {
  cost::Residuals before_hopper;
  cost::Residuals hopper;
  cost::Residuals without_nvlink{};  // stays 1: what was measured contradicts itself

  const cost::Residuals& of(const MeasuredTable& table) const {
    return !table.has_nvlink ? without_nvlink : table.compute_capability >= 90 ? hopper : before_hopper;
  }
};

// NCCL's own collectives with its own choice; tables of `left_out` are ignored.
bool counts_for_fit(const MeasuredTable& table);
ResidualFit fit_residuals(const std::vector<MeasuredTable>& tables, const std::string& left_out = {});

double median(std::vector<double> values);

}  // namespace rollcall::latency
