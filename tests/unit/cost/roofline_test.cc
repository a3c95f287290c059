// How long a kernel takes, depending on its work.

#include "sim/cost/roofline.h"

#include "sim/cost/presets.h"
#include "tests/catch.h"

namespace rollcall::cost::roofline_test {
namespace {

const Gpu& gpu_of(std::string_view cluster) { return *find_gpu(*find_cluster(cluster).cluster); }

}  // namespace

TEST_CASE("a product takes its operations at the part of the peak that products reach", "[roofline]") {
  // 86.9 % of 312 teraflops: 271,128 operations per nanosecond.
  CHECK(time_of(gpu_of("a100-8"), {.flops = 271'128'000}) == 1000);
  // 19.5 teraflops in float32, of which a product reaches the same share.
  CHECK(time_of(gpu_of("a100-8"), {.flops = 271'128'000, .precision = Precision::float32}) == 16'000);
}

TEST_CASE("what moves more bytes than it computes takes the time of its bytes", "[roofline]") {
  // 85 % of 2,039 bytes per nanosecond.
  CHECK(time_of(gpu_of("a100-8"), {.flops = 1000, .bytes = 2039 * 850, .kind = KernelKind::elementwise}) ==
        1000);
  CHECK(time_of(gpu_of("a100-8"), {.flops = 271'128'000, .bytes = 2039 * 8500, .kind = KernelKind::matmul}) ==
        10'000);
}

TEST_CASE("no work takes no time, and little work takes some", "[roofline]") {
  CHECK(time_of(gpu_of("h100-8"), {}) == 0);
  CHECK(time_of(gpu_of("h100-8"), {.flops = 1}) == 1);
}

TEST_CASE("a GPU without units for a type has no time for it", "[roofline]") {
  CHECK_FALSE(time_of(gpu_of("a100-8"), {.flops = 1, .precision = Precision::float8}));
  CHECK(time_of(gpu_of("h100-8"), {.flops = 1e9, .precision = Precision::float8}).value() <
        time_of(gpu_of("h100-8"), {.flops = 1e9}).value());
}

TEST_CASE("every preset has a GPU, and a described cluster the first of its generation", "[roofline]") {
  for (const MachineSummary& machine : machines()) {
    CAPTURE(machine.name);
    const Gpu* gpu = find_gpu(*find_machine(machine.name));
    REQUIRE(gpu != nullptr);
    CHECK(gpu->compute_capability == find_machine(machine.name)->compute_capability);
    CHECK(gpu->memory_bytes > 0);
  }
  Cluster described;
  described.compute_capability = 90;
  CHECK(find_gpu(described)->name == "H100 SXM");
  described.compute_capability = 61;
  CHECK(find_gpu(described) == nullptr);
  CHECK(find_gpu("h100-500w")->memory_bytes > find_gpu("h100")->memory_bytes);
  CHECK(find_gpu("nothing") == nullptr);
}

}  // namespace rollcall::cost::roofline_test
