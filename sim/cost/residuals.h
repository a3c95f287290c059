#pragma once

// Corrections of the expectation from measurements: factors by size, one for each of a few traits of a call, and the
// spread of measurements on unseen machines.
//
// The factors were fitted to the published nccl-tests tables in tests/data/nccl_tables; docs/latency.md has the tables
// and the errors, including those of systems left out of the fit. tests/latency repeats the fit and compares.

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/cost/topology.h"
#include "sim/cost/tuner.h"

namespace rollcall::cost {

// A value at each of six sizes, 4 KiB to 4 GiB in steps of 16. Between them it follows the logarithm of the size,
// outside it is constant.
struct BySize {
  static constexpr std::size_t count = 6;
  static constexpr int first = 12;  // log2 of the first size
  static constexpr int step = 4;

  std::array<double, count> values{1, 1, 1, 1, 1, 1};

  double at(std::int64_t bytes) const;
};

// The weight of each of the six sizes for `bytes`: nonzero for two neighbors at most, 1 in total.
std::array<double, BySize::count> shares_of(std::int64_t bytes);

// The traits that have factors. A call has one of the first six, and any of the rest.
enum class Trait : std::uint8_t {
  without_nvlink,  // any algorithm
  ring_in_a_node,
  ring_between_nodes,
  tree,
  nvls,
  nvls_tree,
  blackwell,
  before_hopper,  // with NVLink
  efa,
  slingshot,
};
inline constexpr std::size_t trait_count = 10;
std::string_view to_string(Trait trait);

using Traits = std::array<bool, trait_count>;
Traits traits_of(const Communicator& communicator, Algorithm algorithm);
// The traits of calls that are not NCCL's own collectives: those of the network alone.
Traits network_traits_of(const Communicator& communicator);

using Residuals = std::array<BySize, trait_count>;
const Residuals& fitted_residuals();
double factor_of(const Residuals& residuals, const Traits& traits, std::int64_t bytes);

// Nine of ten measurements lie between these factors of the expected time.
struct Interval {
  double low = 1;
  double high = 1;
};
Interval interval_at(std::int64_t bytes, bool is_calibrated);

}  // namespace rollcall::cost
