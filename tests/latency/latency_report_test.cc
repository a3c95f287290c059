#include "tests/latency/latency_report.h"
#include "tests/contents.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/catch.h"
#include "tests/latency/residual_fit.h"

namespace rollcall::latency {

namespace {

using rollcall::test::contents;

const std::string root = ROLLCALL_SOURCE_DIR;

std::vector<MeasuredTable> all_tables() { return measured_tables(root + "/tests/data/nccl_tables"); }

}  // namespace

TEST_CASE("every published table finds its cluster and is compared row by row", "[latency]") {
  const auto tables = all_tables();
  CHECK(tables.size() >= 38);
  for (const MeasuredTable& table : tables) {
    CAPTURE(table.file, table.cluster);
    const bool is_excluded = table.is_forced && table.rows.empty();  // LL128 on PCIe
    CHECK((is_excluded || table.rows.size() >= 10));
    for (const MeasuredRow& row : table.rows) {
      CHECK(row.predicted > 0);
    }
  }
}

TEST_CASE("the residuals are what the tables give", "[latency]") {
  const ResidualFit fit = fit_residuals(all_tables());
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(cost::residuals_of(80, true).factors[i] == Approx(fit.before_hopper.factors[i]).margin(0.0051));
    CHECK(cost::residuals_of(90, true).factors[i] == Approx(fit.hopper.factors[i]).margin(0.0051));
  }
}

TEST_CASE("residuals help, also on systems they have not seen", "[latency]") {
  const Errors errors = errors_of(all_tables());
  CHECK(errors.rows > 300);
  CHECK(errors.model < 0.2);
  CHECK(errors.fitted < errors.model);
  CHECK(errors.held_out < errors.model);
}

TEST_CASE("docs/latency.md says what the tables say", "[latency]") {
  const std::string path = root + "/docs/latency.md";
  const std::string page = latency_page(all_tables());
  if (std::getenv("ROLLCALL_BLESS") != nullptr) {
    std::ofstream(path, std::ios::binary) << page;
  }
  CHECK(contents(path) == page);
}

}  // namespace rollcall::latency
