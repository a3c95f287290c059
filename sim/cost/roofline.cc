#include "sim/cost/roofline.h"

#include <algorithm>
#include <array>

#include "sim/base/expects.h"

namespace rollcall::cost {

namespace {

struct PrecisionName {
  std::string_view name;
  Precision precision;
};
constexpr std::array<PrecisionName, 8> precisions{{
    {"float64", Precision::float64},
    {"float32", Precision::float32},
    {"tf32", Precision::tf32},
    {"float16", Precision::half},
    {"bfloat16", Precision::half},
    {"float8", Precision::float8},
    {"float8_e4m3fn", Precision::float8},
    {"float8_e5m2", Precision::float8},
}};

// `memory` is the part of the memory's peak that such kernels reach. Copies reach what STREAM's do; the others are our
// estimates: reductions have a tail, and an embedding's rows are scattered.
struct KindRow {
  std::string_view name;
  KernelKind kind;
  Permille memory;
};
constexpr std::array<KindRow, 6> kinds{{
    {"matmul", KernelKind::matmul, 850},
    {"attention", KernelKind::attention, 850},
    {"elementwise", KernelKind::elementwise, 850},
    {"reduction", KernelKind::reduction, 750},
    {"embedding", KernelKind::embedding, 500},
    {"copy", KernelKind::copy, 900},
}};

constexpr std::int64_t gib = std::int64_t{1} << 30;

// Peaks and memories: NVIDIA's data sheets of each GPU, dense (half of what is given with sparsity); for L40S and RTX
// 4090 also the Ada whitepaper, with accumulation in float32. The H100 of Meta's Grand Teton has 96 GB at 2.4 TB/s
// (pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md). The same machines give a GPU 500 W instead of 700
// W: power grows with the cube of the clock, so peaks are those of an H100 times the cube root of 5/7.
//
// matmul: stas00/ml-engineering at 744d01e, compute/accelerator/README.md, "Maximum Achievable Matmul FLOPS": the best
// of many shapes, measured in bfloat16. Not in that table: V100, which gets the A100's value; Ada, H20, H800 and A800,
// which get those of similar GPUs.
//
// attention: FlashAttention-2's paper (arXiv 2307.08691) has 50 to 73 % of an A100; FlashAttention-3's (arXiv
// 2407.08608) says that version 2 reaches 35 % of an H100. PyTorch's scaled_dot_product_attention was measured there at
// 287 to 304 teraflops (pytorch/benchmark, commit d5f0a12), which is used here. Blackwell: 35 %, for want of a
// measurement. V100 has no flash attention; its value is our guess.
constexpr std::array<Gpu, 23> gpus{{
    // name, machine, capability, {float64, float32, tf32, half, float8}, GB/s, memory, matmul, attention
    {"A100 SXM 80 GB", "a100", 80, {19.5, 19.5, 156, 312, 0}, 2039, 80 * gib, 869, 600},
    {"A100 SXM 80 GB", "a100-mesh", 80, {19.5, 19.5, 156, 312, 0}, 2039, 80 * gib, 869, 600},
    {"A100 SXM 40 GB", "a100-perlmutter", 80, {19.5, 19.5, 156, 312, 0}, 1555, 40 * gib, 869, 600},
    {"A100 SXM 40 GB", "a100-polaris", 80, {19.5, 19.5, 156, 312, 0}, 1555, 40 * gib, 869, 600},
    {"A100 SXM 40 GB", "p4d", 80, {19.5, 19.5, 156, 312, 0}, 1555, 40 * gib, 869, 600},
    {"A100 PCIe 80 GB", "a100-pcie", 80, {19.5, 19.5, 156, 312, 0}, 1935, 80 * gib, 811, 600},
    {"A800 SXM", "a800", 80, {19.5, 19.5, 156, 312, 0}, 2039, 80 * gib, 869, 600},
    {"H100 SXM", "h100", 90, {67, 67, 494.7, 989.4, 1978.9}, 3350, 80 * gib, 803, 300},
    {"H100 SXM", "p5", 90, {67, 67, 494.7, 989.4, 1978.9}, 3350, 80 * gib, 803, 300},
    {"H100 PCIe", "h100-pcie", 90, {51, 51, 378, 756, 1513}, 2000, 80 * gib, 803, 300},
    {"H800 SXM", "h800", 90, {1, 67, 494.7, 989.4, 1978.9}, 3350, 80 * gib, 803, 300},
    {"H20", "h20", 90, {1, 44, 74, 148, 296}, 4000, 96 * gib, 803, 600},
    {"H200", "h200", 90, {67, 67, 494.7, 989.4, 1978.9}, 4800, 141 * gib, 803, 300},
    {"H200", "p5en", 90, {67, 67, 494.7, 989.4, 1978.9}, 4800, 141 * gib, 803, 300},
    {"GH200", "gh200", 90, {67, 67, 494.7, 989.4, 1978.9}, 4000, 96 * gib, 838, 300},
    {"B200", "b200", 100, {37, 75, 1125, 2250, 4500}, 7700, 180 * gib, 776, 350},
    {"GB200", "gb200", 100, {40, 80, 1250, 2500, 5000}, 8000, 186 * gib, 729, 350},
    {"B300", "b300", 103, {1.2, 75, 1125, 2250, 4500}, 8000, 270 * gib, 786, 350},
    {"GB300", "gb300", 103, {1.3, 80, 1250, 2500, 5000}, 8000, 279 * gib, 729, 350},
    {"L40S", "l40s", 89, {1.4, 91.6, 183, 362, 733}, 864, 48 * gib, 811, 600},
    {"H100 SXM 96 GB at 500 W", "h100-500w", 90, {60, 60, 442, 884, 1769}, 2400, 96 * gib, 803, 300},
    {"RTX 4090", "rtx4090", 89, {1.3, 82.6, 82.6, 165.2, 330.3}, 1008, 24 * gib, 811, 600},
    {"V100 SXM2", "v100", 70, {7.8, 15.7, 0, 125, 0}, 900, 32 * gib, 869, 250},
}};

const KindRow& row_of(KernelKind kind) {
  const auto row = std::ranges::find(kinds, kind, &KindRow::kind);
  expects(row != kinds.end(), "every kind of kernel has its row");
  return *row;
}

bool is_product(KernelKind kind) { return kind == KernelKind::matmul || kind == KernelKind::attention; }

template <typename Rows>
std::vector<std::string_view> names_of(const Rows& rows) {
  std::vector<std::string_view> names;
  for (const auto& row : rows) {
    names.push_back(row.name);
  }
  return names;
}

}  // namespace

std::optional<Precision> parse_precision(std::string_view name) {
  const auto row = std::ranges::find(precisions, name, &PrecisionName::name);
  return row == precisions.end() ? std::nullopt : std::optional(row->precision);
}

std::vector<std::string_view> precision_names() { return names_of(precisions); }

std::optional<KernelKind> parse_kernel_kind(std::string_view name) {
  const auto row = std::ranges::find(kinds, name, &KindRow::name);
  return row == kinds.end() ? std::nullopt : std::optional(row->kind);
}

std::vector<std::string_view> kernel_kind_names() { return names_of(kinds); }

const char* to_string(KernelKind kind) { return row_of(kind).name.data(); }

const Gpu* find_gpu(const Cluster& cluster) {
  // A tray's GPUs are its rack's.
  std::string_view machine = cluster.machine;
  if (machine.ends_with("-tray")) {
    machine.remove_suffix(5);
  }
  if (const Gpu* named = find_gpu(machine)) {
    return named;
  }
  const auto* alike = std::ranges::find(gpus, cluster.compute_capability, &Gpu::compute_capability);
  return alike == gpus.end() ? nullptr : alike;
}

const Gpu* find_gpu(std::string_view machine) {
  const auto* found = std::ranges::find(gpus, machine, &Gpu::machine);
  return found == gpus.end() ? nullptr : found;
}

std::optional<Duration> time_of(const Gpu& gpu, const KernelWork& work) {
  // Tensor cores only multiply matrices; everything else runs in float32. PyTorch computes in float32 where TF32 is
  // allowed and the GPU lacks it.
  const bool lacks_tf32 =
      work.precision == Precision::tf32 && gpu.teraflops[static_cast<std::size_t>(Precision::tf32)] == 0;
  const Precision precision = is_product(work.kind) && !lacks_tf32 ? work.precision : Precision::float32;
  const double teraflops = gpu.teraflops[static_cast<std::size_t>(precision)];
  if (work.flops > 0 && teraflops == 0) {
    return std::nullopt;
  }
  const Permille share = work.kind == KernelKind::matmul      ? gpu.matmul
                         : work.kind == KernelKind::attention ? gpu.attention
                                                              : 1000;
  const double reached = teraflops * share;  // flops per nanosecond: 10^12 / 10^9, and thousandths
  const double computing = work.flops > 0 ? work.flops / reached : 0;
  const double moving = work.bytes / (gpu.gigabytes_per_second * row_of(work.kind).memory) * 1000;
  const double longest = std::max(computing, moving);
  return longest > 0 ? std::max<Duration>(1, static_cast<Duration>(longest + 0.5)) : 0;
}

}  // namespace rollcall::cost
