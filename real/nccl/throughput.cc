#include "real/nccl/throughput.h"

#include <stdexcept>

#include <fmt/core.h>

#include "real/nccl/gpu_probe.h"
#include "real/rank/backend_entry.h"

#ifdef ROLLCALL_HAS_NCCL

#include <algorithm>
#include <barrier>
#include <chrono>
#include <exception>
#include <sstream>
#include <thread>

#include "real/nccl/gpu.h"
#include "real/nccl/nccl_api.h"
#include "real/nccl/nccl_types.h"
#include "real/process/forked_work.h"
#include "sim/base/expects.h"
#endif

namespace rollcall::real {

#ifdef ROLLCALL_HAS_NCCL
namespace {

constexpr int warm_up_calls = 5;
constexpr int timed_calls = 20;

using Clock = std::chrono::steady_clock;

// The GPU of one thread.
class Gpu {
 public:
  Gpu(const NcclLibraries& libraries, const ThroughputOptions& options, const ncclUniqueId& id, int rank,
      int ranks)
      : libraries_(libraries), options_(options), ranks_(ranks) {
    libraries_.check(libraries_.cuda.set_device(rank));
    libraries_.check(libraries_.cuda.stream_create(&stream_, cudaStreamNonBlocking));
    const auto most = static_cast<std::size_t>(std::ranges::max(options_.bytes));
    libraries_.check(libraries_.cuda.malloc(&from_, most));
    libraries_.check(libraries_.cuda.malloc(&into_, most));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    libraries_.check(libraries_.nccl.comm_init(&communicator_, ranks, id, rank, &config));
  }

  void call(std::int64_t bytes) {
    const NcclApi& nccl = libraries_.nccl;
    const ncclDataType_t type = nccl_type_of(options_.dtype);
    const ncclRedOp_t reduce = nccl_operator_of(options_.reduce, options_.dtype);
    const std::size_t count = static_cast<std::size_t>(bytes) / size_of(options_.dtype);
    const std::size_t part = count / static_cast<std::size_t>(ranks_);
    switch (row_of(options_.op).nccl) {
      case NcclFunction::all_reduce:
        return libraries_.check(nccl.all_reduce(from_, into_, count, type, reduce, communicator_, stream_));
      case NcclFunction::broadcast:
        return libraries_.check(nccl.broadcast(from_, into_, count, type, 0, communicator_, stream_));
      case NcclFunction::reduce:
        return libraries_.check(nccl.reduce(from_, into_, count, type, reduce, 0, communicator_, stream_));
      case NcclFunction::all_gather:
        return libraries_.check(nccl.all_gather(from_, into_, part, type, communicator_, stream_));
      case NcclFunction::reduce_scatter:
        return libraries_.check(
            nccl.reduce_scatter(from_, into_, part, type, reduce, communicator_, stream_));
      case NcclFunction::messages:
      case NcclFunction::none:
        expects(false, "only what is_measured is called");
    }
  }

  void finish() { libraries_.check(synchronize_(stream_)); }

 private:
  const NcclLibraries& libraries_;
  const ThroughputOptions& options_;
  decltype(cudaStreamSynchronize)* synchronize_ = CudaGraphApi().stream_synchronize;
  int ranks_;
  void* from_ = nullptr;
  void* into_ = nullptr;
  cudaStream_t stream_ = nullptr;
  ncclComm_t communicator_ = nullptr;
};

// The times of the slowest GPU, in microseconds per call, by size.
std::vector<double> measure_here(const ThroughputOptions& options, int gpus) {
  const NcclLibraries libraries;
  ncclUniqueId id = {};
  libraries.check(libraries.nccl.get_unique_id(&id));
  std::vector<std::vector<double>> times(static_cast<std::size_t>(gpus));
  std::barrier together(gpus);
  const auto measure_one = [&](int rank) {
    Gpu gpu(libraries, options, id, rank, gpus);
    for (const std::int64_t bytes : options.bytes) {
      for (int i = 0; i < warm_up_calls; ++i) {
        gpu.call(bytes);
      }
      gpu.finish();
      together.arrive_and_wait();
      const Clock::time_point start = Clock::now();
      for (int i = 0; i < timed_calls; ++i) {
        gpu.call(bytes);
      }
      gpu.finish();
      const std::chrono::duration<double, std::micro> taken = Clock::now() - start;
      times[static_cast<std::size_t>(rank)].push_back(taken.count() / timed_calls);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < gpus; ++rank) {
      threads.emplace_back(measure_one, rank);
    }
  }
  std::vector<double> slowest = times.front();
  for (const std::vector<double>& own : times) {
    std::ranges::transform(own, slowest, slowest.begin(), [](double a, double b) { return std::max(a, b); });
  }
  return slowest;
}

}  // namespace

// Measures in a separate process: an error in one thread ends all, and CUDA does not survive the next fork.
std::vector<double> measure_throughput(const ThroughputOptions& options) {
  if (!is_measured(options.op)) {
    throw std::invalid_argument(fmt::format("{} cannot be measured", to_string(options.op)));
  }
  const GpuProbe probe = probe_gpus();
  if (!probe.problem.empty()) {
    throw Unavailable(fmt::format("nccl: {}", probe.problem));
  }
  if (probe.is_stand_in && !options.takes_stand_in) {
    throw Unavailable("nccl: the libraries are a stand-in for tests, whose times mean nothing");
  }
  if (probe.gpus < options.gpus || options.gpus < 2) {
    throw Unavailable(
        fmt::format("nccl: measuring times needs two ranks or more and one GPU for each: {} wanted, {} found",
                    options.gpus, probe.gpus));
  }
  const Ending ending = run_forked([&] {
    std::string text;
    for (const double time : measure_here(options, options.gpus)) {
      text += fmt::format("{}\n", time);
    }
    return text;
  });
  std::istringstream lines(ending.result);
  std::vector<double> times;
  for (double time = 0; lines >> time;) {
    times.push_back(time);
  }
  if (times.size() != options.bytes.size()) {
    throw Unavailable("nccl: the measuring process failed; its message is above");
  }
  return times;
}

#else

std::vector<double> measure_throughput(const ThroughputOptions&) {
  throw Unavailable(fmt::format("nccl: {}", probe_gpus().problem));
}

#endif

bool is_measured(OpKind op) {
  const OpRow& row = row_of(op);
  const bool has_function = row.nccl != NcclFunction::none && row.nccl != NcclFunction::messages;
  return has_function && has_tensor(op) && row.given != Tensors::several;
}

}  // namespace rollcall::real
