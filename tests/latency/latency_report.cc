#include "tests/latency/latency_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/core.h>

#include "scenarios/measured/median.h"
#include "tests/latency/residual_fit.h"

namespace rollcall::latency {

namespace {

struct Band {
  std::string_view name;
  std::int64_t first = 0;
  std::int64_t last = 0;

  bool holds(std::int64_t bytes) const { return bytes >= first && bytes <= last; }
};

constexpr std::int64_t kibi = 1024;
constexpr std::int64_t mebi = 1024 * kibi;
constexpr std::array<Band, 3> bands{{{"to 64 KiB", 0, 64 * kibi},
                                     {"to 16 MiB", 64 * kibi + 1, 16 * mebi},
                                     {"above", 16 * mebi + 1, INT64_MAX}}};
constexpr std::size_t rows_for_calibration = 9;

double error_of(double predicted, double measured) { return std::abs(predicted / measured - 1); }

// The line that fits a table's times best, with each error relative to its time.
struct Line {
  double alpha = 0;
  double beta = 0;
};
Line fit_line(const MeasuredTable& table) {
  double ww = 0;
  double ws = 0;
  double ss = 0;
  double w = 0;
  double s = 0;
  for (const MeasuredRow& row : table.rows) {
    const double weight = 1 / row.measured.time;
    const double size = static_cast<double>(row.measured.bytes) * weight;
    ww += weight * weight;
    ws += weight * size;
    ss += size * size;
    w += weight;
    s += size;
  }
  const double determinant = ww * ss - ws * ws;
  if (determinant <= 1e-9 * ww * ss) {
    return {0, s / ss};
  }
  return {(w * ss - s * ws) / determinant, (ww * s - ws * w) / determinant};
}

// The line through two rows of a table.
Line line_through(const cost::Measurement& first, const cost::Measurement& last) {
  const double beta = (last.time - first.time) / static_cast<double>(last.bytes - first.bytes);
  return {first.time - beta * static_cast<double>(first.bytes), beta};
}

double at(const Line& line, std::int64_t bytes) {
  return line.alpha + line.beta * static_cast<double>(bytes);
}

bool is_inside(double measured, double expected, const cost::Interval& interval) {
  return measured >= expected * interval.low && measured <= expected * interval.high;
}

// Predicts the row with half of the residuals, to which corrections are relative.
cost::ModeledRow modeled(const MeasuredRow& row, const cost::Residuals& residuals) {
  const double factor = cost::factor_of(residuals, row.traits, row.measured.bytes);
  return {row.measured.bytes, cost::with_factor(row.predicted, std::sqrt(factor)), row.measured.time};
}

void judge(const MeasuredTable& table, const cost::Residuals& all, const cost::Residuals& others,
           std::vector<JudgedRow>& judged) {
  const Line line = fit_line(table);
  const auto by_size = [](const MeasuredRow& a, const MeasuredRow& b) {
    return a.measured.bytes < b.measured.bytes;
  };
  const auto [first, last] = std::ranges::minmax_element(table.rows, by_size);
  const cost::Correction correction = cost::fit_correction(table.op, table.cluster.nodes > 1,
                                                           {modeled(*first, others), modeled(*last, others)});
  for (const MeasuredRow& row : table.rows) {
    const double time = row.measured.time;
    const double left_out = expected_with(others, row);
    JudgedRow result{.table = &table,
                     .bytes = row.measured.bytes,
                     .torch = row.torch ? error_of(*row.torch, time) : -1,
                     .alpha_beta = error_of(at(line, row.measured.bytes), time),
                     .tuner = error_of(row.predicted.time, time),
                     .fitted = error_of(expected_with(all, row), time),
                     .left_out = error_of(left_out, time),
                     .is_inside = is_inside(time, left_out, cost::interval_at(row.measured.bytes, false))};
    if (table.rows.size() >= rows_for_calibration && &row != &*first && &row != &*last) {
      const double calibrated = correction.apply(modeled(row, others).modeled, row.measured.bytes);
      result.two_points =
          error_of(at(line_through(first->measured, last->measured), row.measured.bytes), time);
      result.two_rows = error_of(calibrated, time);
      result.is_inside_calibrated = is_inside(time, calibrated, cost::interval_at(row.measured.bytes, true));
    }
    judged.push_back(result);
  }
}

std::string percent(double fraction) { return fraction < 0 ? "" : fmt::format("{:.1f}", 100 * fraction); }

// One line of a table of errors, in percent.
std::string error_cells(const std::vector<JudgedRow>& rows,
                        const std::function<bool(const JudgedRow&)>& wanted) {
  std::string text = fmt::format(" {} |", std::ranges::count_if(rows, wanted));
  for (const auto error : {&JudgedRow::torch, &JudgedRow::alpha_beta, &JudgedRow::tuner, &JudgedRow::fitted,
                           &JudgedRow::left_out, &JudgedRow::two_points, &JudgedRow::two_rows}) {
    text += fmt::format(" {} |", percent(median_error(rows, error, wanted)));
  }
  return text + "\n";
}

constexpr const char* error_header =
    " rows | PyTorch | alpha-beta | NCCL's tuner | expected, seen | **expected, unseen** | alpha-beta of two "
    "rows | **expected, with two rows** |\n|---|---|---|---|---|---|---|---|---|\n";

const char* introduction = R"(# How long a call takes

`rollcall predict`, and every run of a scenario with a `cluster` on nccl, give two times for a call.

**NCCL's own estimate** (`time`). The equations by which NCCL itself chooses algorithm, protocol and channels
(`src/graph/tuning.cc`, `src/enqueue.cc`), of 2.28.9 or of the release that `--nccl` names. For size *S*, of all
algorithms and protocols the least of

    time = latency + S / bandwidth

is chosen. Latency is a base cost plus a cost per hop; bandwidth is the speed of the channels that NCCL's graph
search finds, capped per generation of GPUs. [sim/cost/tuner.cc](../sim/cost/tuner.cc) has the equations,
[sim/cost/presets.cc](../sim/cost/presets.cc) the channels of machines people name. `predict --explain` shows every
candidate, and why one cannot be used. The implementation gives NCCL's latency and bandwidth, choice, channels and
time in every entry of `tests/data/nccl_tuner`, which NCCL's own sources computed (`tests/unit/cost/tuner_test.cc`).
One entry there looks odd and is NCCL's: for PAT the number of channels is never reduced, because the loop that does
it finds a thread count of 0. Registered (symmetric) memory has NCCL's other model
([sim/cost/symmetric_kernels.h](../sim/cost/symmetric_kernels.h)).

**What is to be expected** (`expected`, with an interval that holds nine of ten measurements). The choice is NCCL's;
its time is what ports and NICs carry, what a hop through such a network takes and what the host needs to launch
([sim/cost/expectation.h](../sim/cost/expectation.h)), times factors that were fitted to measurements
([sim/cost/residuals.h](../sim/cost/residuals.h)). With rows measured on the machine itself (`--calibrate`), a
constant and a factor of its own are added ([sim/cost/calibration.h](../sim/cost/calibration.h)).

What NCCL has no model for, `send`, `recv`, `all_to_all`, `gather` and `scatter`, follows a model of **ours**: a
start, a hop, and the bytes over the narrowest port they pass ([sim/cost/message_model.h](../sim/cost/message_model.h)).
Tables and JSON say so.

Where times are the expected ones, calls that run at once share what there is
([sim/cost/contention.h](../sim/cost/contention.h)): the port of a GPU that is in two of them, a NIC that groups of one
node have in common. They share its capacity, and in a trace each call's remark says how much time that cost.
Computing slows down by the multiprocessors that the channels of a call on the same GPU hold. The factors are counts,
and were not fitted: no published table has two groups at once.

What is not modeled: messages beside others, memory that kernels share, congestion by other jobs, SHM without peer
access, first use and warm-up. With registered memory, NCCL 2.28 and later can copy by copy engines
(`NCCL_CTA_POLICY_ZERO`), and reach other nodes from its kernels (GIN); neither model has them, and
`predict --symmetric-memory --explain` says where they would run.

This page is written from `tests/data/nccl_tables` and `tests/data/nccl_tables_2026`, published results of nccl-tests,
by

    ROLLCALL_BLESS=1 build/dev/rollcall_tests '[latency]'

and a test fails when it is out of date.

)";

std::set<std::string> systems_of(const std::vector<MeasuredTable>& tables) {
  std::set<std::string> systems;
  for (const MeasuredTable& table : tables) {
    if (counts_for_fit(table)) {
      systems.insert(table.system);
    }
  }
  return systems;
}

std::string summary_section(const std::vector<JudgedRow>& rows) {
  const auto everything = [](const JudgedRow&) { return true; };
  std::string text =
      "## Median absolute error, in percent\n\n"
      "*PyTorch* is its own estimator, which compilers of PyTorch schedule by: "
      "`torch._inductor.comm_analysis` of 2.14.1,\n"
      "run for these rows (`tests/latency/torch_estimator.py`) and told how many GPUs NVLink joins, of which "
      "generation.\n"
      "*alpha-beta* is a latency and a bandwidth fitted to the table itself: the best that two numbers do "
      "where "
      "the answer\n"
      "is known. *Seen*: the factors were fitted to all tables. *Unseen*: to all but those of the system in "
      "question; this\n"
      "is what to expect on a machine that is not listed, and a little less than the truth, because the "
      "traits, and the\n"
      "shares of ports in `expectation.cc`, were chosen with these tables in sight. The last two columns "
      "know "
      "the smallest\n"
      "and the largest row of the table, of tables with nine rows or more, and are judged by the others: "
      "*alpha-beta of two\n"
      "rows* is the line through both, *expected, with two rows* is unseen, and calibrated.\n\n"
      "| size |";
  text += error_header;
  text += "| all |" + error_cells(rows, everything);
  for (const Band& band : bands) {
    text += fmt::format("| {} |", band.name) +
            error_cells(rows, [&](const JudgedRow& row) { return band.holds(row.bytes); });
  }
  text += "\n| collective |";
  text += error_header;
  for (const OpKind op : {OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter}) {
    text += fmt::format("| {} |", to_string(op)) +
            error_cells(rows, [&](const JudgedRow& row) { return row.table->op == op; });
  }
  std::size_t inside = 0;
  std::size_t calibrated = 0;
  std::size_t inside_calibrated = 0;
  for (const JudgedRow& row : rows) {
    inside += row.is_inside ? 1 : 0;
    calibrated += row.two_rows >= 0 ? 1 : 0;
    inside_calibrated += row.is_inside_calibrated ? 1 : 0;
  }
  text += fmt::format(
      "\nThe interval holds {} % of the rows of unseen systems, and {} % of the others where two rows are "
      "known.\n\n",
      percent(static_cast<double>(inside) / static_cast<double>(rows.size())),
      percent(static_cast<double>(inside_calibrated) / static_cast<double>(calibrated)));
  return text;
}

std::string system_section(const std::vector<MeasuredTable>& tables, const std::vector<JudgedRow>& rows) {
  std::string text = "## By system, collective and size\n\n| system, collective, size |";
  text += error_header;
  for (const std::string& system : systems_of(tables)) {
    for (const OpKind op : {OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter}) {
      for (const Band& band : bands) {
        const auto wanted = [&](const JudgedRow& row) {
          return row.table->system == system && row.table->op == op && band.holds(row.bytes);
        };
        if (std::ranges::any_of(rows, wanted)) {
          text += fmt::format("| {}, {}, {} |", system, to_string(op), band.name) + error_cells(rows, wanted);
        }
      }
    }
  }
  return text + "\n";
}

std::string residual_section(const cost::Residuals& residuals) {
  std::string text =
      "## Factors\n\n"
      "Measured over expected time. A call's factors are multiplied: one of the first six rows, and of the "
      "rest\n"
      "those that are true of it. Between the sizes a factor follows the logarithm of the size. `predict` "
      "prints\n"
      "times with and without; runs use them with `\"residuals\": true` in the cluster.\n\n"
      "| | 4 KiB and less | 64 KiB | 1 MiB | 16 MiB | 256 MiB | 4 GiB and more "
      "|\n|---|---|---|---|---|---|---|\n";
  for (std::size_t trait = 0; trait < cost::trait_count; ++trait) {
    text += fmt::format("| {} |", to_string(static_cast<cost::Trait>(trait)));
    for (const double factor : residuals[trait].values) {
      text += fmt::format(" {:.2f} |", factor);
    }
    text += "\n";
  }
  return text + "\n";
}

// Returns the geometric mean of measured over predicted; empty if the table has no sizes in the band.
std::string ratio_in(const MeasuredTable& table, const Band& band, double cost::Prediction::*predicted) {
  double sum = 0;
  int count = 0;
  for (const MeasuredRow& row : table.rows) {
    if (band.holds(row.measured.bytes)) {
      sum += std::log(row.measured.time / (row.predicted.*predicted));
      ++count;
    }
  }
  return count == 0 ? "" : fmt::format("{:.2f}", std::exp(sum / count));
}

std::string ratio_section(const std::vector<MeasuredTable>& tables) {
  std::string text =
      "## Measured over predicted\n\n"
      "Geometric means by size, of the model and, after the slash, of what is expected. Tables with a "
      "forced\n"
      "algorithm or protocol, of symmetric memory, and one published as suspect are not part of the fit.\n\n"
      "| table | cluster | to 64 KiB | to 16 MiB | above | model |\n|---|---|---|---|---|---|\n";
  for (const MeasuredTable& table : tables) {
    text += fmt::format("| {} | {} |", table.file, table.name);
    for (const Band& band : bands) {
      const std::string plain = ratio_in(table, band, &cost::Prediction::time);
      text += plain.empty()
                  ? "  |"
                  : fmt::format(" {} / {} |", plain, ratio_in(table, band, &cost::Prediction::fitted));
    }
    text += table.by_nccl ? " NCCL |\n" : " ours |\n";
  }
  return text;
}

}  // namespace

std::vector<JudgedRow> judged_rows(const std::vector<MeasuredTable>& tables) {
  const cost::Residuals all = fit_residuals(tables);
  std::vector<JudgedRow> judged;
  for (const std::string& system : systems_of(tables)) {
    const cost::Residuals others = fit_residuals(tables, system);
    for (const MeasuredTable& table : tables) {
      if (table.system == system && counts_for_fit(table)) {
        judge(table, all, others, judged);
      }
    }
  }
  return judged;
}

double median_error(const std::vector<JudgedRow>& rows, double JudgedRow::*error,
                    const std::function<bool(const JudgedRow&)>& wanted) {
  std::vector<double> errors;
  for (const JudgedRow& row : rows) {
    if (row.*error >= 0 && (!wanted || wanted(row))) {
      errors.push_back(row.*error);
    }
  }
  return errors.empty() ? -1 : measured::median(std::move(errors));
}

std::string latency_page(const std::vector<MeasuredTable>& tables) {
  const std::vector<JudgedRow> rows = judged_rows(tables);
  return introduction + summary_section(rows) + residual_section(fit_residuals(tables)) +
         system_section(tables, rows) + ratio_section(tables);
}

}  // namespace rollcall::latency
