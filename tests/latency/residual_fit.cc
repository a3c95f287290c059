#include "tests/latency/residual_fit.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace rollcall::latency {

namespace {

// The residual size nearest to `bytes`, on a logarithmic scale; the lower of two.
std::size_t band_of(std::int64_t bytes) {
  const auto distance = [bytes](std::size_t band) {
    return std::abs(std::log2(static_cast<double>(cost::Residuals::sizes[band])) -
                    std::log2(static_cast<double>(bytes)));
  };
  std::size_t best = 0;
  for (std::size_t band = 1; band < cost::Residuals::sizes.size(); ++band) {
    best = distance(band) < distance(best) ? band : best;
  }
  return best;
}

// The geometric mean of the systems' medians, and of one system without any error.
double shrunken_mean(const std::map<std::string, std::vector<double>>& logs_of_system) {
  double sum = 0;
  for (const auto& [system, logs] : logs_of_system) {
    sum += median(logs);
  }
  return std::exp(sum / (static_cast<double>(logs_of_system.size()) + 1));
}

cost::Residuals fit_class(const std::vector<MeasuredTable>& tables, const std::string& left_out,
                          bool is_hopper) {
  std::array<std::map<std::string, std::vector<double>>, 3> logs;  // by band and system
  for (const MeasuredTable& table : tables) {
    const bool belongs = table.has_nvlink && (table.compute_capability >= 90) == is_hopper;
    if (!belongs || table.system == left_out || !counts_for_fit(table)) {
      continue;
    }
    for (const MeasuredRow& row : table.rows) {
      logs[band_of(row.bytes)][table.system].push_back(std::log(row.measured / row.predicted));
    }
  }
  cost::Residuals residuals;
  for (std::size_t band = 0; band < logs.size(); ++band) {
    residuals.factors[band] = shrunken_mean(logs[band]);
  }
  return residuals;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) {
    return 0;
  }
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

bool counts_for_fit(const MeasuredTable& table) { return table.by_nccl && !table.is_forced; }

ResidualFit fit_residuals(const std::vector<MeasuredTable>& tables, const std::string& left_out) {
  return {fit_class(tables, left_out, false), fit_class(tables, left_out, true)};
}

}  // namespace rollcall::latency
