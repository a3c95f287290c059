#include "sim/cost/calibration.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/expects.h"
#include "sim/cost/group_cost.h"
#include "sim/cost/portable_math.h"

namespace rollcall::cost {

namespace {

// If the line through the outer rows has a factor outside these bounds, or takes off more than this share of the
// smallest time, it does not describe a machine: then only factors by size are used.
constexpr double factor_least = 0.1;
constexpr double factor_most = 20;
constexpr double constant_share = 0.7;
constexpr double line_least = 0.2;  // of the modeled time, whatever the constant

std::optional<Prediction> predict(const Cluster& cluster, const Measurement& row) {
  if (row.time <= 0 || row.bytes <= 0 || row.nodes < 1 || row.ranks < std::max(2, row.nodes)) {
    return std::nullopt;
  }
  const GroupCost group(communicator_of(cluster, row.ranks, row.nodes));
  return group.predict({.kind = row.kind, .bytes = row.bytes, .same_node = row.nodes == 1});
}

Cluster without_corrections(Cluster cluster) {
  cluster.corrections.clear();
  return cluster;
}

}  // namespace

Correction fit_correction(OpKind kind, bool several_nodes, std::vector<ModeledRow> rows) {
  expects(!rows.empty(), "there is a row to fit to");
  std::ranges::stable_sort(rows, {}, &ModeledRow::bytes);
  Correction correction{.kind = kind, .several_nodes = several_nodes, .anchors = {}};
  const ModeledRow& first = rows.front();
  const ModeledRow& last = rows.back();
  if (last.modeled > first.modeled) {
    const double factor = (last.measured - first.measured) / (last.modeled - first.modeled);
    const double constant = first.measured - factor * first.modeled;
    if (factor >= factor_least && factor <= factor_most && constant > -constant_share * first.measured) {
      correction.factor = factor;
      correction.constant = constant;
    }
  }
  std::vector<Correction::Anchor> anchors;
  for (const ModeledRow& row : rows) {
    const double left = row.measured / correction.apply(row.modeled, row.bytes);
    if (!anchors.empty() && anchors.back().bytes == row.bytes) {
      anchors.back().factor = std::sqrt(anchors.back().factor * left);
    } else {
      anchors.push_back({row.bytes, left});
    }
  }
  correction.anchors = std::move(anchors);
  return correction;
}

double Correction::apply(double modeled, std::int64_t bytes) const {
  const double line = std::max(constant + factor * modeled, modeled * line_least);
  if (anchors.empty()) {
    return line;
  }
  if (bytes <= anchors.front().bytes) {
    return line * anchors.front().factor;
  }
  for (std::size_t i = 1; i < anchors.size(); ++i) {
    if (bytes <= anchors[i].bytes) {
      const double low = log2_of(anchors[i - 1].bytes);
      const double weight = (log2_of(bytes) - low) / (log2_of(anchors[i].bytes) - low);
      return line * (anchors[i - 1].factor * (1 - weight) + anchors[i].factor * weight);
    }
  }
  return line * anchors.back().factor;
}

std::vector<Correction> corrections_of(const Cluster& cluster, const std::vector<Measurement>& rows) {
  const Cluster bare = without_corrections(cluster);
  std::map<std::pair<OpKind, bool>, std::vector<ModeledRow>> modeled;
  for (const Measurement& row : rows) {
    if (const auto prediction = predict(bare, row)) {
      modeled[{row.kind, row.nodes > 1}].push_back({row.bytes, prediction->base, row.time});
    }
  }
  std::vector<Correction> corrections;
  for (auto& [key, of_key] : modeled) {
    corrections.push_back(fit_correction(key.first, key.second, std::move(of_key)));
  }
  return corrections;
}

const Correction* correction_for(const std::vector<Correction>& corrections, OpKind kind,
                                 bool several_nodes) {
  const Correction* best = nullptr;
  for (const Correction& each : corrections) {
    if (each.several_nodes != several_nodes) {
      continue;
    }
    if (each.kind == kind) {
      return &each;
    }
    best = best == nullptr ? &each : best;
  }
  return best;
}

std::vector<RowErrors> errors_of(const Cluster& cluster, const std::vector<Measurement>& rows) {
  const Cluster bare = without_corrections(cluster);
  Cluster all = bare;
  all.corrections = corrections_of(bare, rows);
  std::vector<RowErrors> errors;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<Measurement> others = rows;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    Cluster most = bare;
    most.corrections = corrections_of(bare, others);
    const auto error = [&](const Cluster& with) {
      const auto prediction = predict(with, rows[i]);
      return prediction ? std::abs(prediction->fitted / rows[i].time - 1) : 0;
    };
    errors.push_back({error(bare), error(all), error(most)});
  }
  return errors;
}

}  // namespace rollcall::cost
