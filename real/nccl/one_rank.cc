#include "real/nccl/one_rank.h"

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include <fmt/core.h>

#include "real/process/forked_work.h"
#include "real/process/process_state.h"

#ifdef ROLLCALL_HAS_NCCL
#include "real/nccl/nccl_api.h"
#endif

namespace rollcall::real {

#ifdef ROLLCALL_HAS_NCCL

using Floats = std::vector<float>;

namespace {

// The types of functions that older headers (nccl.h of 2.28.9) do not declare.
using ShrinkFunction = ncclResult_t(ncclComm_t, int*, int, ncclComm_t*, ncclConfig_t*, int);
using RevokeFunction = ncclResult_t(ncclComm_t, int);

std::string name_of(ncclResult_t result) {
  constexpr std::array names = {"ncclSuccess",       "ncclUnhandledCudaError", "ncclSystemError",
                                "ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
                                "ncclRemoteError",   "ncclInProgress"};  // by number
  static_assert(ncclInProgress == names.size() - 1);
  const auto number = static_cast<std::size_t>(result);
  return number < names.size() ? names[number] : fmt::format("ncclResult {}", static_cast<int>(result));
}

// Ends a trial early; the text is its outcome.
struct Outcome : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace

class OneRank {
 public:
  OneRank() {
    must(cuda.set_device(0));
    must(cuda.stream_create(&stream, cudaStreamNonBlocking));
    ncclUniqueId id = {};
    must(nccl.get_unique_id(&id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    must(nccl.comm_init(&communicator, 1, id, 0, &config));
  }

  void must(cudaError_t result) const {
    if (result != cudaSuccess) {
      throw Outcome(fmt::format("CUDA error: {}", cuda.error_string(result)));
    }
  }
  void must(ncclResult_t result) const {
    if (result != ncclSuccess) {
      throw Outcome(name_of(result));
    }
  }

  float* upload(const Floats& values) {
    void* memory = nullptr;
    must(cuda.malloc(&memory, values.size() * sizeof(float)));
    must(cuda.memcpy_async(memory, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice,
                           stream));
    must(extra.stream_synchronize(stream));
    return static_cast<float*>(memory);
  }

  // Compares the memory with `values` after all work on the stream.
  std::string expect(const float* memory, const Floats& values) {
    Floats found(values.size());
    must(cuda.memcpy_async(found.data(), memory, found.size() * sizeof(float), cudaMemcpyDeviceToHost,
                           stream));
    must(extra.stream_synchronize(stream));
    return found == values ? "ncclSuccess" : "wrong data";
  }

  ncclResult_t sum(const void* from, void* into, std::size_t count) const {
    return nccl.all_reduce(from, into, count, ncclFloat32, ncclSum, communicator, stream);
  }

  CudaApi cuda;
  CudaGraphApi extra;
  NcclApi nccl;
  cudaStream_t stream = nullptr;
  ncclComm_t communicator = nullptr;
};

namespace {

std::string copies(OneRank& rank) {
  float* from = rank.upload({1, 2, 3});
  float* into = rank.upload({0, 0, 0});
  rank.must(rank.sum(from, into, 3));
  return rank.expect(into, {1, 2, 3});
}

std::string stays_in_place(OneRank& rank) {
  float* memory = rank.upload({1, 2, 3});
  rank.must(rank.sum(memory, memory, 3));
  return rank.expect(memory, {1, 2, 3});
}

std::string averages(OneRank& rank) {
  float* from = rank.upload({1, 2, 3});
  float* into = rank.upload({0, 0, 0});
  rank.must(rank.nccl.all_reduce(from, into, 3, ncclFloat32, ncclAvg, rank.communicator, rank.stream));
  return rank.expect(into, {1, 2, 3});
}

std::string premultiplies(OneRank& rank) {
  decltype(ncclRedOpCreatePreMulSum)* const create = rank.nccl.library.find("ncclRedOpCreatePreMulSum");
  float factor = 4;
  ncclRedOp_t scaled = ncclSum;
  rank.must(create(&scaled, &factor, ncclFloat32, ncclScalarHostImmediate, rank.communicator));
  float* from = rank.upload({1, 2, 3});
  float* into = rank.upload({0, 0, 0});
  rank.must(rank.nccl.all_reduce(from, into, 3, ncclFloat32, scaled, rank.communicator, rank.stream));
  return rank.expect(into, {4, 8, 12});
}

std::string does_nothing(OneRank& rank) {
  float* into = rank.upload({7});
  rank.must(rank.sum(into, into, 0));
  return rank.expect(into, {7});
}

std::string sends_alone(OneRank& rank) {
  float* memory = rank.upload({1});
  return name_of(rank.nccl.send(memory, 1, ncclFloat32, 0, rank.communicator, rank.stream));
}

std::string sends_to_itself(OneRank& rank) {
  float* from = rank.upload({1, 2});
  float* into = rank.upload({0, 0});
  rank.must(rank.nccl.group_start());
  rank.must(rank.nccl.send(from, 2, ncclFloat32, 0, rank.communicator, rank.stream));
  rank.must(rank.nccl.recv(into, 2, ncclFloat32, 0, rank.communicator, rank.stream));
  rank.must(rank.nccl.group_end());
  return rank.expect(into, {1, 2});
}

std::string ends_no_group(OneRank& rank) { return name_of(rank.nccl.group_end()); }

std::string nests_groups(OneRank& rank) {
  float* from = rank.upload({5});
  float* into = rank.upload({0});
  rank.must(rank.nccl.group_start());
  rank.must(rank.nccl.group_start());
  rank.must(rank.sum(from, into, 1));
  rank.must(rank.nccl.group_end());
  rank.must(rank.nccl.group_end());
  return rank.expect(into, {5});
}

std::string names_no_root(OneRank& rank) {
  float* memory = rank.upload({1});
  return name_of(rank.nccl.broadcast(memory, memory, 1, ncclFloat32, 1, rank.communicator, rank.stream));
}

std::string names_no_type(OneRank& rank) {
  float* memory = rank.upload({1});
  const auto type = static_cast<ncclDataType_t>(ncclNumTypes);
  return name_of(rank.nccl.all_reduce(memory, memory, 1, type, ncclSum, rank.communicator, rank.stream));
}

std::string names_no_operator(OneRank& rank) {
  float* memory = rank.upload({1});
  const auto reduce = static_cast<ncclRedOp_t>(ncclNumOps);  // a user's operator that was never created
  return name_of(
      rank.nccl.all_reduce(memory, memory, 1, ncclFloat32, reduce, rank.communicator, rank.stream));
}

std::string names_no_communicator(OneRank& rank) {
  float* memory = rank.upload({1});
  return name_of(rank.nccl.all_reduce(memory, memory, 1, ncclFloat32, ncclSum, nullptr, rank.stream));
}

std::string gives_host_memory(OneRank& rank) {
  Floats memory(4);
  return name_of(rank.sum(memory.data(), memory.data(), memory.size()));
}

std::string gives_no_memory(OneRank& rank) { return name_of(rank.sum(nullptr, nullptr, 4)); }

// Copies before and after, on the same stream, without a wait of the host in between.
std::string keeps_order(OneRank& rank) {
  float* from = rank.upload({0, 0});
  float* into = rank.upload({0, 0});
  float* last = rank.upload({0, 0});
  const Floats values{8, 9};
  const std::size_t bytes = values.size() * sizeof(float);
  rank.must(rank.cuda.memcpy_async(from, values.data(), bytes, cudaMemcpyHostToDevice, rank.stream));
  rank.must(rank.sum(from, into, values.size()));
  rank.must(rank.cuda.memcpy_async(last, into, bytes, cudaMemcpyDeviceToDevice, rank.stream));
  return rank.expect(last, values);
}

std::string is_captured(OneRank& rank) {
  float* from = rank.upload({6});
  float* into = rank.upload({0});
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  rank.must(rank.extra.begin_capture(rank.stream, cudaStreamCaptureModeThreadLocal));
  rank.must(rank.sum(from, into, 1));
  rank.must(rank.extra.end_capture(rank.stream, &graph));
  if (const std::string early = rank.expect(into, {0}); early != "ncclSuccess") {
    return "ran while it was captured";
  }
  rank.must(rank.extra.instantiate(&executable, graph, 0));
  rank.must(rank.extra.launch(executable, rank.stream));
  return rank.expect(into, {6});
}

std::string starts_without_blocking(OneRank& rank) {
  ncclUniqueId id = {};
  rank.must(rank.nccl.get_unique_id(&id));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t second = nullptr;
  ncclResult_t state = rank.nccl.comm_init(&second, 1, id, 0, &config);
  while (state == ncclInProgress) {
    rank.must(rank.nccl.async_error(second, &state));
  }
  return name_of(state);
}

std::string splits(OneRank& rank) {
  decltype(ncclCommSplit)* const split = rank.nccl.library.find("ncclCommSplit");
  decltype(ncclCommCount)* const count_of = rank.nccl.library.find("ncclCommCount");
  ncclComm_t part = nullptr;
  rank.must(split(rank.communicator, 0, 0, &part, nullptr));
  int count = 0;
  rank.must(count_of(part, &count));
  return count == 1 ? "ncclSuccess" : fmt::format("a communicator of {} ranks", count);
}

std::string splits_off_nobody(OneRank& rank) {
  decltype(ncclCommSplit)* const split = rank.nccl.library.find("ncclCommSplit");
  ncclComm_t part = rank.communicator;
  rank.must(split(rank.communicator, NCCL_SPLIT_NOCOLOR, 0, &part, nullptr));
  return part == nullptr ? "ncclSuccess" : "a communicator without ranks";
}

std::string shrinks_away(OneRank& rank) {
  ShrinkFunction* const shrink = rank.nccl.library.find("ncclCommShrink");
  int self = 0;
  ncclComm_t rest = nullptr;
  return name_of(shrink(rank.communicator, &self, 1, &rest, nullptr, 0));
}

std::string calls_after_revoke(OneRank& rank) {
  RevokeFunction* const revoke = rank.nccl.library.find("ncclCommRevoke");
  float* memory = rank.upload({1});
  rank.must(revoke(rank.communicator, 0));
  return name_of(rank.sum(memory, memory, 1));
}

std::string finalizes_after_revoke(OneRank& rank) {
  RevokeFunction* const revoke = rank.nccl.library.find("ncclCommRevoke");
  rank.must(revoke(rank.communicator, 0));
  return name_of(rank.nccl.comm_finalize(rank.communicator));
}

std::string aborts(OneRank& rank) { return name_of(rank.nccl.comm_abort(rank.communicator)); }

std::string ends(OneRank& rank) {
  rank.must(rank.nccl.comm_finalize(rank.communicator));
  return name_of(rank.nccl.comm_destroy(rank.communicator));
}

std::string repeats_a_gpu(OneRank& rank) {
  decltype(ncclCommInitAll)* const init_all = rank.nccl.library.find("ncclCommInitAll");
  const int devices[] = {0, 0};
  ncclComm_t communicators[2] = {};
  return name_of(init_all(communicators, 2, devices));
}

constexpr Trial trials[] = {
    {"an all_reduce copies", "ncclSuccess", "enqueue.cc, taskAppend", copies},
    {"an all_reduce in place", "ncclSuccess", "enqueue.cc, taskAppend", stays_in_place},
    {"an average", "ncclSuccess", "onerank.cu", averages},
    {"a sum of premultiplied values", "ncclSuccess", "onerank.cu", premultiplies},
    {"a count of 0", "ncclSuccess", "enqueue.cc, collTaskAppend", does_nothing},
    {"a send to itself without a receive", "ncclInvalidUsage", "group.cc", sends_alone},
    {"a send to itself and its receive in a group", "ncclSuccess", "enqueue.cc, taskAppend", sends_to_itself},
    {"the end of a group that was never started", "ncclInvalidUsage", "group.cc, ncclGroupEndInternal",
     ends_no_group},
    {"nested groups", "ncclSuccess", "group.cc", nests_groups},
    {"a root outside the communicator", "ncclInvalidArgument", "argcheck.cc, ArgsCheck", names_no_root},
    {"an unknown data type", "ncclInvalidArgument", "argcheck.cc, ArgsCheck", names_no_type},
    {"an operator that was never created", "ncclInvalidArgument", "argcheck.cc, ArgsCheck",
     names_no_operator},
    {"a null communicator", "ncclInvalidArgument", "argcheck.cc, PtrCheck", names_no_communicator},
    {"host memory, with NCCL_CHECK_POINTERS=1", "ncclInvalidArgument", "argcheck.cc, CudaPtrCheck",
     gives_host_memory},
    {"a null pointer, with NCCL_CHECK_POINTERS=1", "ncclInvalidArgument", "argcheck.cc, CudaPtrCheck",
     gives_no_memory},
    {"order on a stream", "ncclSuccess", "docs, usage/streams", keeps_order},
    {"capture into a graph", "ncclSuccess", "docs, usage/cudagraph", is_captured},
    {"a non-blocking initialization", "ncclSuccess", "init.cc, ncclCommInitRankConfig",
     starts_without_blocking},
    {"a split", "ncclSuccess", "init.cc, ncclCommSplit", splits},
    {"a split without a color", "ncclSuccess", "init.cc, ncclCommSplit", splits_off_nobody},
    {"a shrink that excludes every rank", "ncclInvalidArgument|ncclInvalidUsage", "init.cc, ncclCommShrink",
     shrinks_away},
    {"a call after revoke", "ncclInvalidUsage", "init.cc, ncclCommRevoke", calls_after_revoke},
    {"finalize after revoke", "ncclInvalidUsage|ncclInvalidArgument",
     "nccl.h, ncclCommRevoke; the second is 2.28.9's", finalizes_after_revoke},
    {"abort", "ncclSuccess", "init.cc, ncclCommAbort", aborts},
    {"finalize and destroy", "ncclSuccess", "init.cc, ncclCommFinalize", ends},
    {"one GPU twice in one process", "ncclInvalidUsage", "init.cc, ncclCommInitAll", repeats_a_gpu},
};

// Makes the communicator and runs the body. Call it in a separate process: a trial may end or poison the process.
std::string outcome_of(const Trial& trial) {
  ::setenv("NCCL_CHECK_POINTERS", "1", 1);
  try {
    OneRank rank;
    return trial.body(rank);
  } catch (const Outcome& outcome) {
    return outcome.what();
  } catch (const std::exception& error) {
    return fmt::format("unavailable: {}", error.what());
  }
}

}  // namespace

std::span<const Trial> one_rank_trials() { return trials; }

std::string try_one_rank(std::size_t trial, Duration limit) {
  const Ending ending = run_forked([&] { return outcome_of(trials[trial]); }, limit);
  switch (ending.kind) {
    case Ending::Kind::returned:
      return ending.result;
    case Ending::Kind::killed:
      return signal_name(ending.number);
    case Ending::Kind::exited:
      return fmt::format("exit {}", ending.number);
    case Ending::Kind::too_slow:
    case Ending::Kind::too_large:
      break;
  }
  return "hang";
}

#else

std::span<const Trial> one_rank_trials() { return {}; }
std::string try_one_rank(std::size_t, Duration) { return "unavailable: built without NCCL's headers"; }

#endif

bool is_predicted(std::string_view predicted, std::string_view observed) {
  for (;;) {
    const std::size_t bar = predicted.find('|');
    if (predicted.substr(0, bar) == observed) {
      return true;
    }
    if (bar == std::string_view::npos) {
      return false;
    }
    predicted.remove_prefix(bar + 1);
  }
}

}  // namespace rollcall::real
