#include "tests/latency/latency_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/core.h>

#include "tests/latency/residual_fit.h"

namespace rollcall::latency {

namespace {

struct Band {
  std::string_view name;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

constexpr std::int64_t kibi = 1024;
constexpr std::int64_t mebi = 1024 * kibi;
constexpr std::array<Band, 3> bands{{{"to 32 KiB", 0, 32 * kibi},
                                     {"to 16 MiB", 32 * kibi + 1, 16 * mebi},
                                     {"above", 16 * mebi + 1, INT64_MAX}}};

double absolute_error(const MeasuredRow& row, double factor) {
  return std::abs(row.predicted * factor / row.measured - 1);
}

// Measured over predicted, the geometric mean; nothing where the table has no such sizes.
std::string ratio_in(const MeasuredTable& table, const Band& band, const cost::Residuals& residuals) {
  double sum = 0;
  int count = 0;
  for (const MeasuredRow& row : table.rows) {
    if (row.bytes >= band.first && row.bytes <= band.last) {
      sum += std::log(row.measured / (row.predicted * residuals.at(row.bytes)));
      ++count;
    }
  }
  return count == 0 ? "" : fmt::format("{:.2f}", std::exp(sum / count));
}

std::set<std::string> systems_of(const std::vector<MeasuredTable>& tables) {
  std::set<std::string> systems;
  for (const MeasuredTable& table : tables) {
    if (counts_for_fit(table)) {
      systems.insert(table.system);
    }
  }
  return systems;
}

// Absolute errors of a system's rows, under the factors of a fit.
std::vector<double> errors_in(const std::vector<MeasuredTable>& tables, const std::string& system,
                              const ResidualFit& fit) {
  std::vector<double> errors;
  for (const MeasuredTable& table : tables) {
    if (table.system == system && counts_for_fit(table)) {
      for (const MeasuredRow& row : table.rows) {
        errors.push_back(absolute_error(row, fit.of(table).at(row.bytes)));
      }
    }
  }
  return errors;
}

void append(std::vector<double>& all, const std::vector<double>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

std::string percent(double fraction) { return fmt::format("{:.1f} %", 100 * fraction); }

const char* introduction = R"(# How long a call takes

`rollcall predict`, and every run of a scenario with a `cluster` on nccl, take their times from the tuner of NCCL
2.28.9: the equations by which NCCL itself chooses algorithm, protocol and channels (`src/graph/tuning.cc`,
`src/enqueue.cc`). For size *S*, of all algorithms and protocols the least of

    time = latency + S / bandwidth

is chosen. Latency is a base cost plus a cost per hop; bandwidth is the speed of the channels that NCCL's graph
search finds, capped per generation of GPUs. [sim/cost/tuner.cc](../sim/cost/tuner.cc) has the equations,
[sim/cost/presets.cc](../sim/cost/presets.cc) the channels of machines people name. `predict --explain` shows every
candidate, and why one cannot be used.

The implementation gives NCCL's latency and bandwidth, choice, channels and time in every entry of
`tests/data/nccl_tuner`, which NCCL's own sources computed (`tests/unit/cost/tuner_test.cc`). One entry there looks
odd and is NCCL's: for PAT the number of channels is never reduced, because the loop that does it finds a thread
count of 0.

What NCCL has no model for, `send`, `recv`, `all_to_all`, `gather` and `scatter`, follows a model of **ours**: a
start, a hop, and the bytes over the narrowest port they pass ([sim/cost/message_model.h](../sim/cost/message_model.h)).
Tables and JSON say so.

What is not modeled: the host's launches beyond the residuals, congestion, traffic that shares a link, SHM without
peer access, first use and warm-up.

This page is written from `tests/data/nccl_tables`, published results of nccl-tests, by

    ROLLCALL_BLESS=1 build/dev/rollcall_tests '[latency]'

and a test fails when it is out of date.

)";

std::string residual_section(const ResidualFit& fit) {
  std::string text =
      "## Residuals\n\n"
      "Measured over predicted time, fitted: the geometric mean over systems of each system's median ratio "
      "near a\n"
      "size, with one imaginary system without error among them. Between the sizes the factor follows the "
      "logarithm\n"
      "of the size. `predict` prints the time with and without; runs use it with `\"residuals\": true` in "
      "the cluster.\n"
      "The first column is mostly what hosts need to launch, which the tuner leaves out; the middle is "
      "where\n"
      "NCCL is optimistic about its pipelines. Machines without NVLink have none: the two systems known "
      "contradict\n"
      "each other.\n\n"
      "| GPUs | 4 KiB and less | 1 MiB | 256 MiB and more |\n|---|---|---|---|\n";
  for (const auto& [name, residuals] : {std::pair("NVLink, before Hopper", &fit.before_hopper),
                                        {"NVLink, Hopper and later", &fit.hopper},
                                        {"without NVLink", &fit.without_nvlink}}) {
    text += fmt::format("| {} | {:.2f} | {:.2f} | {:.2f} |\n", name, residuals->factors[0],
                        residuals->factors[1], residuals->factors[2]);
  }
  return text + "\n";
}

std::string error_section(const std::vector<MeasuredTable>& tables, const ResidualFit& fit) {
  const Errors errors = errors_of(tables);
  std::string text = fmt::format(
      "## Median absolute error\n\n"
      "Over {} rows of NCCL's own collectives: **{}** of NCCL's model as it is, {} with residuals fitted to "
      "these\n"
      "tables, and **{}** with residuals that have not seen the system they are applied to (each system left "
      "out\n"
      "in turn). The last figure is what to expect on a machine that is not listed; a little more, because "
      "the classes\n"
      "and sizes of the residuals were chosen with all tables in sight.\n\n"
      "| system | rows | model | fitted | left out |\n|---|---|---|---|---|\n",
      errors.rows, percent(errors.model), percent(errors.fitted), percent(errors.held_out));
  for (const std::string& system : systems_of(tables)) {
    const auto raw = errors_in(tables, system, {});
    text += fmt::format("| {} | {} | {} | {} | {} |\n", system, raw.size(), percent(median(raw)),
                        percent(median(errors_in(tables, system, fit))),
                        percent(median(errors_in(tables, system, fit_residuals(tables, system)))));
  }
  return text + "\n";
}

std::string ratio_section(const std::vector<MeasuredTable>& tables, const ResidualFit& fit) {
  std::string text =
      "## Measured over predicted\n\n"
      "Geometric means by size, of the model as it is and, behind the stroke, with residuals. Tables with a "
      "forced\n"
      "algorithm or protocol are not part of the fit; what the model excludes there has no figure. Calls of "
      "our own\n"
      "model have no residuals.\n\n"
      "| table | cluster | to 32 KiB | to 16 MiB | above | model |\n|---|---|---|---|---|---|\n";
  for (const MeasuredTable& table : tables) {
    text += fmt::format("| {} | {} |", table.file, table.cluster);
    for (const Band& band : bands) {
      const std::string plain = ratio_in(table, band, {});
      const bool is_fitted = table.by_nccl && !plain.empty();
      text += fmt::format(" {}{} |", plain, is_fitted ? " / " + ratio_in(table, band, fit.of(table)) : "");
    }
    text += table.by_nccl ? " NCCL |\n" : " ours |\n";
  }
  return text;
}

}  // namespace

Errors errors_of(const std::vector<MeasuredTable>& tables) {
  const ResidualFit all = fit_residuals(tables);
  std::vector<double> model;
  std::vector<double> fitted;
  std::vector<double> held_out;
  for (const std::string& system : systems_of(tables)) {
    append(model, errors_in(tables, system, {}));
    append(fitted, errors_in(tables, system, all));
    append(held_out, errors_in(tables, system, fit_residuals(tables, system)));
  }
  return {median(model), median(fitted), median(held_out), model.size()};
}

std::string latency_page(const std::vector<MeasuredTable>& tables) {
  const ResidualFit fit = fit_residuals(tables);
  return introduction + residual_section(fit) + error_section(tables, fit) + ratio_section(tables, fit);
}

}  // namespace rollcall::latency
