#include "tests/latency/residual_fit.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace rollcall::latency {

namespace {

constexpr std::size_t unknowns = cost::trait_count * cost::BySize::count;
constexpr int rounds = 10;
constexpr double small_error = 0.1;  // below this, errors count by their squares
constexpr double rows_of_a_system = 10;
constexpr double rest_least = 0.2;  // share of the expected time besides hops, if the hops alone exceed it

// How strongly a trait's factors are pulled toward 1. All other traits also depend on the GPU's generation.
double pull_of(std::size_t trait) {
  const auto kind = static_cast<cost::Trait>(trait);
  return kind == cost::Trait::blackwell || kind == cost::Trait::before_hopper ? 1.0 : 0.5;
}

struct Sample {
  std::vector<std::pair<std::size_t, double>> parts;  // which unknown, and its share
  double log_ratio = 0;
  double weight = 1;
};

std::vector<Sample> samples_of(const std::vector<MeasuredTable>& tables, const std::string& left_out) {
  std::map<std::string, double> rows;
  for (const MeasuredTable& table : tables) {
    rows[table.system] += counts_for_fit(table) ? static_cast<double>(table.rows.size()) : 0;
  }
  std::vector<Sample> samples;
  for (const MeasuredTable& table : tables) {
    if (table.system == left_out || !counts_for_fit(table)) {
      continue;
    }
    for (const MeasuredRow& row : table.rows) {
      Sample sample;
      const auto shares = cost::shares_of(row.measured.bytes);
      for (std::size_t trait = 0; trait < cost::trait_count; ++trait) {
        for (std::size_t size = 0; row.traits[trait] && size < shares.size(); ++size) {
          if (shares[size] > 0) {
            sample.parts.emplace_back(trait * cost::BySize::count + size, shares[size]);
          }
        }
      }
      const double rest = row.predicted.physical - row.predicted.hops;
      sample.log_ratio = std::log(std::max(row.measured.time - row.predicted.hops, rest_least * rest) / rest);
      sample.weight = std::min(1.0, rows_of_a_system / rows[table.system]);
      samples.push_back(std::move(sample));
    }
  }
  return samples;
}

using Row = std::array<double, unknowns + 1>;

// Gaussian elimination without pivots: the matrix is positive definite.
std::array<double, unknowns> solve(std::vector<Row> matrix) {
  for (std::size_t i = 0; i < unknowns; ++i) {
    for (std::size_t j = i + 1; j < unknowns; ++j) {
      const double factor = matrix[j][i] / matrix[i][i];
      for (std::size_t k = i; factor != 0 && k <= unknowns; ++k) {
        matrix[j][k] -= factor * matrix[i][k];
      }
    }
  }
  std::array<double, unknowns> result{};
  for (std::size_t i = unknowns; i-- > 0;) {
    double sum = matrix[i][unknowns];
    for (std::size_t k = i + 1; k < unknowns; ++k) {
      sum -= matrix[i][k] * result[k];
    }
    result[i] = sum / matrix[i][i];
  }
  return result;
}

}  // namespace

cost::Residuals fit_residuals(const std::vector<MeasuredTable>& tables, const std::string& left_out) {
  const std::vector<Sample> samples = samples_of(tables, left_out);
  std::array<double, unknowns> logs{};
  for (int round = 0; round < rounds; ++round) {
    std::vector<Row> matrix(unknowns, Row{});
    for (std::size_t i = 0; i < unknowns; ++i) {
      matrix[i][i] = pull_of(i / cost::BySize::count);
    }
    for (const Sample& sample : samples) {
      double error = sample.log_ratio;
      for (const auto& [at, share] : sample.parts) {
        error -= logs[at] * share;
      }
      const double weight = sample.weight * small_error / std::max(std::abs(error), small_error);
      for (const auto& [at, share] : sample.parts) {
        for (const auto& [other, other_share] : sample.parts) {
          matrix[at][other] += weight * share * other_share;
        }
        matrix[at][unknowns] += weight * share * sample.log_ratio;
      }
    }
    logs = solve(std::move(matrix));
  }
  cost::Residuals residuals;
  for (std::size_t i = 0; i < unknowns; ++i) {
    residuals[i / cost::BySize::count].values[i % cost::BySize::count] = std::exp(logs[i]);
  }
  return residuals;
}

double expected_with(const cost::Residuals& residuals, const MeasuredRow& row) {
  return cost::with_factor(row.predicted, cost::factor_of(residuals, row.traits, row.measured.bytes));
}

}  // namespace rollcall::latency
