#include "scenarios/measured/calibrate.h"

#include <set>
#include <stdexcept>

#include <fmt/core.h>

#include "scenarios/measured/median.h"

namespace rollcall::measured {

namespace {

std::string percent(double fraction) { return fmt::format("{:.1f} %", 100 * fraction); }

std::set<std::int64_t> sizes_of(const std::vector<cost::Measurement>& rows) {
  std::set<std::int64_t> sizes;
  for (const cost::Measurement& row : rows) {
    sizes.insert(row.bytes);
  }
  return sizes;
}

}  // namespace

cost::Cluster calibrate(cost::Cluster cluster, const std::vector<cost::Measurement>& rows) {
  if (sizes_of(rows).size() < 2) {
    throw std::invalid_argument(
        "--calibrate needs rows of two sizes or more; a small and a large one say most, such as 8 B and 1 "
        "GiB");
  }
  cluster.corrections = cost::corrections_of(cluster, rows);
  return cluster;
}

std::string calibration_text(const cost::Cluster& calibrated, const std::vector<cost::Measurement>& rows) {
  std::string text;
  for (const cost::Correction& correction : calibrated.corrections) {
    std::vector<cost::Measurement> own;
    for (const cost::Measurement& row : rows) {
      if (row.kind == correction.kind && (row.nodes > 1) == correction.several_nodes) {
        own.push_back(row);
      }
    }
    std::vector<double> before;
    std::vector<double> left_out;
    for (const cost::RowErrors& errors : cost::errors_of(calibrated, own)) {
      before.push_back(errors.before);
      left_out.push_back(errors.left_out);
    }
    text += fmt::format("# calibrated: {} {}: {} rows; {:+.2f} us and times {:.3f}; error before {}",
                        to_string(correction.kind), correction.several_nodes ? "between nodes" : "in a node",
                        own.size(), correction.constant, correction.factor, percent(median(before)));
    text += own.size() > 2
                ? fmt::format(", of rows left out in turn {}\n", percent(median(left_out)))
                : std::string(", no error remains at these rows; a third would say how good it is\n");
  }
  return text;
}

}  // namespace rollcall::measured
