#pragma once

// How long a kernel takes that needs nobody else: by the work it does, on the GPU of a cluster.
//
// A roofline: the longer of computing and moving bytes, each at the speed that such kernels reach. Peaks are those of
// NVIDIA's data sheets, without sparsity; what is reached of them was measured by others, and roofline.cc says by whom.
// Only divisions and products, so that all machines agree.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/time.h"
#include "sim/cost/topology.h"

namespace rollcall::cost {

// What the multipliers take. float32 is PyTorch's default, without TF32.
enum class Precision : std::uint8_t { float64, float32, tf32, half, float8 };
inline constexpr std::size_t precision_count = 5;
// "bfloat16", "float16", "tf32", "float8", "float8_e4m3fn", ...
std::optional<Precision> parse_precision(std::string_view name);
std::vector<std::string_view> precision_names();

enum class KernelKind : std::uint8_t { matmul, attention, elementwise, reduction, embedding, copy };
std::optional<KernelKind> parse_kernel_kind(std::string_view name);
std::vector<std::string_view> kernel_kind_names();
const char* to_string(KernelKind kind);

// Parts of a thousand.
using Permille = int;

struct Gpu {
  std::string_view name;                // "H100 SXM"
  std::string_view machine;             // of a preset
  int compute_capability = 0;           // described clusters are taken for the first row of theirs
  double teraflops[precision_count]{};  // at most, without sparsity; 0: it cannot
  double gigabytes_per_second = 0;      // of its memory, at most
  std::int64_t memory_bytes = 0;
  Permille matmul = 0;     // of the peak that large matrix products reach
  Permille attention = 0;  // and that flash attention reaches, forward and backward
};

// Null where nothing is known of the cluster's GPUs.
const Gpu* find_gpu(const Cluster& cluster);

struct KernelWork {
  double flops = 0;
  double bytes = 0;  // that memory reads and writes
  Precision precision = Precision::half;
  KernelKind kind = KernelKind::matmul;
};

// In nanoseconds, rounded; at least 1 where there is work. Nothing for a precision that the GPU lacks.
std::optional<Duration> time_of(const Gpu& gpu, const KernelWork& work);

}  // namespace rollcall::cost
