#include "real/backends/doctor.h"

#include <fmt/core.h>

#include "real/backends/backends.h"
#include "real/nccl/gpu_probe.h"

#ifdef ROLLCALL_HAS_GLOO
#include <gloo/config.h>
#endif

namespace rollcall::real {
namespace {

Diagnosis examine_gloo() {
#ifdef ROLLCALL_HAS_GLOO
  return {"gloo", fmt::format("{}.{}.{}", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH),
          "real processes over loopback: results bit by bit, hangs, errors; no times"};
#else
  return {"gloo", "not built in; install libgloo-dev and rebuild",
          "no real processes on CPUs; only the simulator and recorded results"};
#endif
}

std::string gpu_meaning(const GpuProbe& probe) {
  if (probe.is_stand_in) {
    return "a stand-in for tests: rollcall's own side of the API, and nothing about NCCL";
  }
  if (probe.gpus >= 2) {
    return "one rank per GPU: results, hangs, errors and times";
  }
  return probe.gpus == 1 ? "one rank, or several that share the GPU: results, hangs and errors; no times"
                         : "nothing about NCCL can be proven here";
}

std::string or_none(const std::string& text) { return text.empty() ? "none" : text; }

}  // namespace

std::vector<Diagnosis> examine() {
  const GpuProbe probe = probe_gpus();
  std::vector<Diagnosis> diagnoses{examine_gloo()};
  diagnoses.push_back({"nccl headers", or_none(probe.nccl_headers), {}});
  diagnoses.push_back({"nccl library", or_none(probe.nccl_library), {}});
  diagnoses.push_back({"cuda runtime", or_none(probe.cuda_runtime), {}});
  diagnoses.push_back({"cuda driver", or_none(probe.driver), {}});
  diagnoses.push_back({"gpus",
                       probe.gpu_names.empty() ? std::to_string(probe.gpus)
                                               : fmt::format("{}: {}", probe.gpus, probe.gpu_names),
                       gpu_meaning(probe)});
  for (const BackendEntry& backend : backends()) {
    const std::string obstacle = backend.obstacle(1);
    diagnoses.push_back({fmt::format("--backend {}", backend.name),
                         obstacle.empty() ? "possible" : "not possible", obstacle});
  }
  return diagnoses;
}

}  // namespace rollcall::real
