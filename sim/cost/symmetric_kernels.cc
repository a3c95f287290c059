#include "sim/cost/symmetric_kernels.h"

#include <algorithm>
#include <array>

#include "sim/cost/portable_math.h"

namespace rollcall::cost {

namespace {

constexpr double ll_bus_factor = 9;      // flags, and no unrolling
constexpr double multicast_bonus = 1.1;  // so that it wins where it exists
constexpr int blocks_max = 64;
constexpr double gibi_per_microsecond = 1024.0 * 1024 * 1024 / 1e6;
constexpr double tolerance = 1.025;  // a little slower with fewer blocks is better

// A kernel: what it moves over the bus for a result of S bytes on n ranks, and how fast.
struct Kernel {
  std::string_view name;
  Function function;
  bool is_ll;
  bool uses_multicast;
};
constexpr std::array<Kernel, 11> kernels{{{"AGxLL_R", Function::all_reduce, true, false},
                                          {"AGxLLMC_R", Function::all_reduce, true, true},
                                          {"RSxLD_AGxST", Function::all_reduce, false, false},
                                          {"RSxLDMC_AGxSTMC", Function::all_reduce, false, true},
                                          {"LL", Function::all_gather, true, false},
                                          {"LLMC", Function::all_gather, true, true},
                                          {"ST", Function::all_gather, false, false},
                                          {"STMC", Function::all_gather, false, true},
                                          {"LL", Function::reduce_scatter, true, false},
                                          {"LD", Function::reduce_scatter, false, false},
                                          {"LDMC", Function::reduce_scatter, false, true}}};

double log1p_of(double x) { return portable_log(1 + x); }

// Smooth versions of min and of max(0, x), as in NCCL.
double soft_min(double x, double ceiling, double softness) {
  const double steep = portable_exp(std::min(ceiling / softness, 600.0)) - 1;
  return ceiling - softness * log1p_of(steep * portable_exp(std::max(-x / softness, -600.0)));
}
double soft_plus(double x) { return x >= 100 ? x : log1p_of(portable_exp(std::max(x, -600.0))); }

struct Rates {
  double base = 0;   // microseconds
  double block = 0;  // bytes per microsecond
  double peak = 0;
};

Rates rates_of(const Kernel& kernel, bool is_blackwell) {
  const bool reduces_all = kernel.function == Function::all_reduce;
  const bool is_both_multicast = reduces_all && !kernel.is_ll && kernel.uses_multicast;
  if (!is_blackwell) {
    return {kernel.is_ll ? 4.5 : 7.8, (reduces_all ? 65 : 44) * gibi_per_microsecond,
            (is_both_multicast ? 480 : 320) * gibi_per_microsecond};
  }
  const double ll = kernel.function == Function::all_gather ? 8.5 : 11;
  return {kernel.is_ll  ? ll
          : reduces_all ? 19.5
                        : 13.0,
          55 * gibi_per_microsecond, (is_both_multicast ? 1000 : 600) * gibi_per_microsecond};
}

double time_of(const Kernel& kernel, const Rates& rates, double bytes, int ranks, int blocks) {
  double moved = 0;
  double share = 1;
  if (kernel.is_ll) {
    moved = ranks * bytes * ll_bus_factor;
    share = kernel.uses_multicast ? multicast_bonus : 1;
  } else if (kernel.function == Function::all_reduce) {
    moved = kernel.uses_multicast ? bytes / ranks + bytes : 2 * bytes * (ranks - 1) / ranks;
    share = kernel.uses_multicast ? ranks : 1;
  } else {
    moved = (ranks - 1) * bytes;
    share = kernel.uses_multicast ? 0.55 * ranks : 1;
  }
  const double bandwidth = soft_min(blocks * rates.block * share, rates.peak, rates.block);
  return rates.base + soft_plus(moved / bandwidth - 1);
}

// NCCL counts the bytes of one rank's part for all_gather and reduce_scatter, of the whole for all_reduce.
double own_bytes(const Request& request, int ranks) {
  const auto bytes = static_cast<double>(request.bytes);
  return request.function == Function::all_reduce ? bytes : bytes / ranks;
}

bool is_supported(const Communicator& communicator, const Request& request) {
  const bool sums = request.reduce == ReduceOp::sum;
  const bool is_float =
      request.dtype == Dtype::float32 || request.dtype == Dtype::float16 || request.dtype == Dtype::bfloat16;
  return communicator.nodes == 1 && communicator.links.nvlink == Links::NvLink::all_to_all_switch &&
         communicator.compute_capability >= 70 && !request.algorithm && !request.protocol &&
         (request.function == Function::all_gather || (sums && is_float));
}

}  // namespace

std::optional<SymmetricChoice> choose_symmetric(const Communicator& communicator, const Request& request) {
  if (!is_supported(communicator, request)) {
    return std::nullopt;
  }
  const int ranks = communicator.ranks;
  const bool has_multicast = communicator.links.nvls && ranks > 2 && communicator.compute_capability >= 90;
  const bool is_blackwell = communicator.compute_capability >= 100;
  const double bytes = own_bytes(request, ranks);
  std::optional<SymmetricChoice> best;
  for (const Kernel& kernel : kernels) {
    if (kernel.function != request.function || (kernel.uses_multicast && !has_multicast)) {
      continue;
    }
    const Rates rates = rates_of(kernel, is_blackwell);
    const bool is_narrow = kernel.uses_multicast && !kernel.is_ll;
    const int most = is_narrow ? ((is_blackwell ? 32 : 16) + ranks - 1) / ranks : blocks_max;
    SymmetricChoice choice{kernel.name, kernel.is_ll, most, time_of(kernel, rates, bytes, ranks, most)};
    for (int blocks = 1; blocks < most; ++blocks) {
      const double time = time_of(kernel, rates, bytes, ranks, blocks);
      if (time <= tolerance * choice.time) {
        choice.blocks = blocks;
        choice.time = time;
        break;
      }
    }
    if (!best || choice.time < best->time) {
      best = choice;
    }
  }
  return best;
}

}  // namespace rollcall::cost
