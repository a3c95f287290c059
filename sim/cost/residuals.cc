#include "sim/cost/residuals.h"

#include <algorithm>

#include "sim/cost/portable_math.h"

namespace rollcall::cost {

namespace {

// Rows as in Trait. Fitted by tests/latency/residual_fit.cc, which says how.
constexpr Residuals fitted{{{{1.07, 1.07, 1.04, 0.96, 1.00, 1.00}},
                            {{1.12, 1.21, 0.95, 1.06, 1.04, 1.07}},
                            {{1.16, 1.58, 1.39, 1.12, 1.00, 1.00}},
                            {{1.04, 1.17, 1.06, 0.98, 0.86, 0.80}},
                            {{1.00, 1.00, 1.05, 1.42, 1.29, 1.02}},
                            {{1.00, 1.02, 1.12, 1.35, 1.22, 1.00}},
                            {{1.11, 1.16, 1.22, 1.27, 1.15, 1.03}},
                            {{1.33, 1.27, 1.14, 1.08, 1.04, 1.00}},
                            {{1.07, 1.15, 1.01, 1.05, 1.00, 0.97}},
                            {{0.92, 1.24, 1.20, 1.13, 1.19, 1.06}}}};

// The 5th and 95th percentiles of measured over expected time, for systems left out of the fit; and for rows between
// the smallest and the largest of a table when those two are known.
constexpr BySize low{{0.70, 0.75, 0.78, 0.79, 0.77, 0.77}};
constexpr BySize high{{1.65, 2.60, 2.60, 1.65, 1.50, 1.35}};
constexpr BySize calibrated_low{{0.93, 0.88, 0.86, 0.82, 0.83, 0.93}};
constexpr BySize calibrated_high{{1.37, 2.20, 2.20, 1.50, 1.30, 1.07}};

constexpr std::size_t place(Trait trait) { return static_cast<std::size_t>(trait); }

}  // namespace

std::string_view to_string(Trait trait) {
  constexpr std::array<std::string_view, trait_count> names{"without NVLink",
                                                            "Ring, one node",
                                                            "Ring, several nodes",
                                                            "Tree",
                                                            "NVLS",
                                                            "NVLSTree",
                                                            "Blackwell",
                                                            "NVLink, before Hopper",
                                                            "EFA, several nodes",
                                                            "Slingshot, several nodes"};
  return names[place(trait)];
}

std::array<double, BySize::count> shares_of(std::int64_t bytes) {
  std::array<double, BySize::count> shares{};
  constexpr double last = BySize::count - 1;
  const double at =
      std::clamp((log2_of(std::max<std::int64_t>(bytes, 1)) - BySize::first) / BySize::step, 0.0, last);
  const auto below = std::min(static_cast<std::size_t>(at), BySize::count - 2);
  const double weight = at - static_cast<double>(below);
  shares[below] = 1 - weight;
  shares[below + 1] = weight;
  return shares;
}

double BySize::at(std::int64_t bytes) const {
  const auto shares = shares_of(bytes);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum += shares[i] * values[i];
  }
  return sum;
}

Traits network_traits_of(const Communicator& communicator) {
  Traits traits{};
  const bool goes_out = communicator.nodes > 1;
  traits[place(Trait::efa)] = goes_out && communicator.links.network == Network::efa;
  traits[place(Trait::slingshot)] = goes_out && communicator.links.network == Network::slingshot;
  return traits;
}

Traits traits_of(const Communicator& communicator, Algorithm algorithm) {
  Traits traits = network_traits_of(communicator);
  if (communicator.links.nvlink == Links::NvLink::none) {
    traits[place(Trait::without_nvlink)] = true;
    return traits;
  }
  const bool is_ring = algorithm == Algorithm::ring || algorithm == Algorithm::pat;
  const Trait family = is_ring ? communicator.nodes == 1 ? Trait::ring_in_a_node : Trait::ring_between_nodes
                       : algorithm == Algorithm::nvls      ? Trait::nvls
                       : algorithm == Algorithm::nvls_tree ? Trait::nvls_tree
                                                           : Trait::tree;
  traits[place(family)] = true;
  traits[place(Trait::blackwell)] = communicator.compute_capability >= 100;
  traits[place(Trait::before_hopper)] = communicator.compute_capability < 90;
  return traits;
}

const Residuals& fitted_residuals() { return fitted; }

double factor_of(const Residuals& residuals, const Traits& traits, std::int64_t bytes) {
  double factor = 1;
  for (std::size_t trait = 0; trait < trait_count; ++trait) {
    factor *= traits[trait] ? residuals[trait].at(bytes) : 1;
  }
  return factor;
}

Interval interval_at(std::int64_t bytes, bool is_calibrated) {
  return is_calibrated ? Interval{calibrated_low.at(bytes), calibrated_high.at(bytes)}
                       : Interval{low.at(bytes), high.at(bytes)};
}

}  // namespace rollcall::cost
