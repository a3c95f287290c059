#pragma once

// The time of a kernel that involves no other rank: from the work it does, on the GPU of a cluster.
//
// A roofline: the longer of computing and moving bytes, each at the speed that such kernels reach. Peaks are those of
// NVIDIA's data sheets, without sparsity; the share of them that is reached was measured by others, whom roofline.cc
// names. Only divisions and products, so that all machines agree.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/time.h"
#include "sim/cost/topology.h"

namespace rollcall::cost {

// The multipliers' input type. float32 is PyTorch's default, without TF32.
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
  int compute_capability = 0;           // described clusters get the first row with theirs
  double teraflops[precision_count]{};  // peak, without sparsity; 0: unsupported
  double gigabytes_per_second = 0;      // of its memory, peak
  std::int64_t memory_bytes = 0;
  Permille matmul = 0;     // the share of the peak that large matrix products reach
  Permille attention = 0;  // the same of flash attention, forward and backward
};

// Null if nothing is known about the cluster's GPUs.
const Gpu* find_gpu(const Cluster& cluster);
// Finds a GPU by its `machine`, even if no preset has it.
const Gpu* find_gpu(std::string_view machine);

struct KernelWork {
  double flops = 0;
  double bytes = 0;  // read from and written to memory
  Precision precision = Precision::half;
  KernelKind kind = KernelKind::matmul;
};

// In nanoseconds, rounded; at least 1 where there is work. Empty for a precision that the GPU lacks.
std::optional<Duration> time_of(const Gpu& gpu, const KernelWork& work);

}  // namespace rollcall::cost
