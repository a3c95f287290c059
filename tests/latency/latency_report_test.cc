#include "tests/latency/latency_report.h"

#include <cstdlib>
#include <fstream>

#include "scenarios/measured/median.h"
#include "scenarios/measured/slow.h"
#include "tests/catch.h"
#include "tests/contents.h"
#include "tests/latency/residual_fit.h"

namespace rollcall::latency::latency_report_test {

namespace {

using rollcall::test::contents;

const std::vector<MeasuredTable>& tables() {
  static const std::vector<MeasuredTable> all = all_measured_tables();
  return all;
}

const std::vector<JudgedRow>& judged() {
  static const std::vector<JudgedRow> rows = judged_rows(tables());
  return rows;
}

}  // namespace

TEST_CASE("every published table finds its cluster and is compared row by row", "[latency]") {
  CHECK(tables().size() >= 55);
  for (const MeasuredTable& table : tables()) {
    CAPTURE(table.file, table.name);
    CHECK(table.rows.size() >= 2);
    for (const MeasuredRow& row : table.rows) {
      CHECK(row.predicted.time > 0);
      CHECK(row.predicted.fitted > 0);
      CHECK(row.predicted.low <= row.predicted.fitted);
      CHECK(row.predicted.fitted <= row.predicted.high);
    }
  }
}

TEST_CASE("the factors are what the tables give", "[latency]") {
  const cost::Residuals fit = fit_residuals(tables());
  for (std::size_t trait = 0; trait < cost::trait_count; ++trait) {
    for (std::size_t size = 0; size < cost::BySize::count; ++size) {
      CAPTURE(to_string(static_cast<cost::Trait>(trait)), size);
      CHECK(cost::fitted_residuals()[trait].values[size] == Approx(fit[trait].values[size]).margin(0.0051));
    }
  }
}

TEST_CASE("what is expected of an unseen system is nearer than what NCCL takes it for, at every size",
          "[latency]") {
  CHECK(judged().size() > 500);
  CHECK(median_error(judged(), &JudgedRow::left_out) < 0.15);
  for (const auto& [first, last, most] : {std::tuple(0LL, 65'536LL, 0.25),
                                          {65'537LL, 16'777'216LL, 0.20},
                                          {16'777'217LL, INT64_MAX / 1LL, 0.10}}) {
    const auto wanted = [lo = first, hi = last](const JudgedRow& row) {
      return row.bytes >= lo && row.bytes <= hi;
    };
    CAPTURE(first);
    CHECK(median_error(judged(), &JudgedRow::left_out, wanted) < most);
    CHECK(median_error(judged(), &JudgedRow::left_out, wanted) <
          median_error(judged(), &JudgedRow::tuner, wanted));
  }
}

TEST_CASE("two rows of a machine are worth more than all that is known of others", "[latency]") {
  CHECK(median_error(judged(), &JudgedRow::two_rows) < 0.07);
  CHECK(median_error(judged(), &JudgedRow::two_rows) < median_error(judged(), &JudgedRow::two_points));
}

TEST_CASE("what is expected of an unseen system is nearer than PyTorch's own estimator", "[latency]") {
  for (const JudgedRow& row : judged()) {
    CAPTURE(row.table->file, row.bytes);
    CHECK(row.torch >= 0);
  }
  CHECK(median_error(judged(), &JudgedRow::left_out) < median_error(judged(), &JudgedRow::torch) / 2);
}

namespace {

// True if `rollcall slow` reports the table. `speed` is that of the slowest NIC or link that every byte has to pass. If
// one of eight rails has half its speed, all have half, because NCCL gives each the same share.
bool is_called(const MeasuredTable& table, double speed) {
  measured::BenchTable bench{.file = table.file, .op = table.op, .rows = {}};
  const cost::Measurement& last = table.rows.back().measured;
  for (const MeasuredRow& row : table.rows) {
    const double moving =
        static_cast<double>(row.measured.bytes) * last.time / static_cast<double>(last.bytes);
    bench.rows.push_back({.bytes = row.measured.bytes, .time = row.measured.time + moving * (1 / speed - 1)});
    bench.ranks = row.measured.ranks;
    bench.nodes = row.measured.nodes;
  }
  return measured::judge_tables({bench}, table.cluster).at(0).is_ill;
}

}  // namespace

TEST_CASE("a machine with a NIC or link at half its speed is called from its table, and a healthy one is not",
          "[latency][slow]") {
  int asked = 0;
  int half = 0;
  int quarter = 0;
  for (const MeasuredTable& table : tables()) {
    CAPTURE(table.file);
    if (table.is_forced) {
      continue;  // the tables do not say which protocol was forced
    }
    CHECK(is_called(table, 1) == table.is_ill);
    if (!table.is_ill && table.rows.back().measured.bytes > (std::int64_t{16} << 20)) {
      ++asked;
      half += is_called(table, 0.5) ? 1 : 0;
      quarter += is_called(table, 0.25) ? 1 : 0;
    }
  }
  CHECK(asked == 49);
  CHECK(half == 46);
  CHECK(quarter == 49);
}

TEST_CASE("no healthy table of an unseen system is near what would be called", "[latency][slow]") {
  double worst = 0;
  for (const MeasuredTable& table : tables()) {
    if (!counts_for_fit(table)) {
      continue;
    }
    const cost::Residuals others = fit_residuals(tables(), table.system);
    std::vector<double> ratios;
    for (const MeasuredRow& row : table.rows) {
      if (row.measured.bytes > (std::int64_t{16} << 20)) {
        ratios.push_back(row.measured.time / expected_with(others, row));
      }
    }
    if (!ratios.empty()) {
      CAPTURE(table.file);
      const double ratio = measured::median(std::move(ratios));
      worst = std::max(worst, ratio);
    }
  }
  CHECK(worst < 1.5);
}

TEST_CASE("the interval holds nine of ten rows of systems it has not seen", "[latency]") {
  double inside = 0;
  double calibrated = 0;
  double inside_calibrated = 0;
  for (const JudgedRow& row : judged()) {
    inside += row.is_inside ? 1 : 0;
    calibrated += row.two_rows >= 0 ? 1 : 0;
    inside_calibrated += row.is_inside_calibrated ? 1 : 0;
  }
  const double share = inside / static_cast<double>(judged().size());
  CHECK((share >= 0.85 && share <= 0.95));
  const double calibrated_share = inside_calibrated / calibrated;
  CHECK((calibrated_share >= 0.85 && calibrated_share <= 0.95));
}

TEST_CASE("docs/latency.md says what the tables say", "[latency]") {
  const std::string path = std::string(ROLLCALL_SOURCE_DIR) + "/docs/latency.md";
  const std::string page = latency_page(tables());
  if (std::getenv("ROLLCALL_BLESS") != nullptr) {
    std::ofstream(path, std::ios::binary) << page;
  }
  CHECK(contents(path) == page);
}

}  // namespace rollcall::latency::latency_report_test
