#include "real/nccl/gpu_probe.h"

#include <concepts>
#include <exception>
#include <type_traits>

#include <fmt/core.h>

#include "real/nccl/gpu_library.h"
#include "real/process/forked_work.h"
#include "sim/base/encoding.h"

#ifdef ROLLCALL_HAS_NCCL
#include "real/nccl/nccl_api.h"
#endif

namespace rollcall::real {

template <typename Visitor, typename AnyProbe>
  requires std::same_as<std::remove_const_t<AnyProbe>, GpuProbe>
void visit(Visitor& visitor, AnyProbe& probe) {
  visitor(probe.nccl_headers, probe.nccl_library, probe.cuda_runtime, probe.driver, probe.gpus,
          probe.gpu_names, probe.is_stand_in, probe.problem);
}

namespace {

#ifdef ROLLCALL_HAS_NCCL

std::string version_of(int code) { return fmt::format("{}.{}", code / 1000, code % 1000 / 10); }

// Sets `into` to the result of `look_at`, or to why it failed; `problem` keeps the first failure.
template <typename Look>
void look(std::string& into, std::string& problem, const char* what, Look&& look_at) {
  try {
    into = look_at();
  } catch (const std::exception& error) {
    into = fmt::format("not found: {}", error.what());
    problem = problem.empty() ? fmt::format("no {}: {}", what, error.what()) : problem;
  }
}

// "NVIDIA H200 at 0000:1B:00.0, ...": in the driver's order, by which ranks number them.
std::string gpus_of(const SharedLibrary& driver) {
  int (*init)(unsigned) = driver.find("cuInit");
  int (*count_of)(int*) = driver.find("cuDeviceGetCount");
  int (*get)(int*, int) = driver.find("cuDeviceGet");
  int (*name_of)(char*, int, int) = driver.find("cuDeviceGetName");
  int (*place_of)(char*, int, int) = driver.find("cuDeviceGetPCIBusId");
  int count = 0;
  std::string names;
  if (init(0) != 0 || count_of(&count) != 0) {
    return {};
  }
  for (int i = 0; i < count; ++i) {
    int device = 0;
    char name[128] = "an unnamed GPU";
    char place[32] = "an unknown bus id";
    if (get(&device, i) == 0 && name_of(name, sizeof name, device) == 0 &&
        place_of(place, sizeof place, device) == 0) {
      names += fmt::format("{}{} at {}", names.empty() ? "" : ", ", name, place);
    }
  }
  return names;
}

GpuProbe probe_here() {
  GpuProbe probe;
  probe.nccl_headers = fmt::format("{}.{}.{}", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
  look(probe.driver, probe.problem, "CUDA driver", [&probe] {
    const SharedLibrary driver = open_gpu_library("libcuda.so.1");
    int (*version)(int*) = driver.find("cuDriverGetVersion");
    int code = 0;
    version(&code);
    probe.gpu_names = gpus_of(driver);
    return fmt::format("{} ({})", version_of(code), driver.name());
  });
  look(probe.cuda_runtime, probe.problem, "CUDA runtime", [&probe] {
    const CudaApi cuda;
    int code = 0;
    cuda.runtime_version(&code);
    const cudaError_t counted = cuda.get_device_count(&probe.gpus);
    if (counted != cudaSuccess) {
      probe.gpus = 0;
      probe.problem = probe.problem.empty() ? cuda.error_string(counted) : probe.problem;
    }
    return fmt::format("{} ({})", version_of(code), cuda.library.name());
  });
  look(probe.nccl_library, probe.problem, "NCCL library", [&probe] {
    const NcclApi nccl;
    // The libraries of rollcall's own tests say that they are.
    probe.is_stand_in = nccl.library.has("rollcallStandIn");
    int code = 0;
    nccl.get_version(&code);
    return fmt::format("{}.{}.{} ({})", code / 10000, code % 10000 / 100, code % 100, nccl.library.name());
  });
  if (probe.gpus == 0 && probe.problem.empty()) {
    probe.problem = "no GPU";
  }
  return probe;
}

#else

GpuProbe probe_here() {
  GpuProbe probe;
  probe.problem = "rollcall was built without NCCL's headers";
  return probe;
}

#endif

}  // namespace

GpuProbe probe_gpus() {
  const std::string text = run_forked([] { return encode_value(probe_here()); }).result;
  if (text.empty()) {
    GpuProbe probe;
    probe.problem = "every process that asks CUDA for its GPUs crashes";
    return probe;
  }
  return decode_value<GpuProbe>(text);
}

}  // namespace rollcall::real
