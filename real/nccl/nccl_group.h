#pragma once

// NcclGroup: one process group on NCCL: a communicator in nonblocking mode, a stream, and what is queued on
// it. Tensors live in host memory; a call copies them to the GPU, runs, and copies results back when it is
// waited for.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "real/nccl/nccl_api.h"
#include "sim/c10d/op.h"

namespace rollcall::real {

struct NcclLibraries {
  CudaApi cuda = load_cuda();
  NcclApi nccl = load_nccl();

  // Throw what torch throws: RuntimeError for CUDA's failures, DistBackendError for NCCL's.
  void check(cudaError_t result) const;
  void check(ncclResult_t result) const;
};

class NcclGroup {
 public:
  // Blocks until all members have come. The current device is the rank's GPU. `id` is the same on all.
  NcclGroup(const NcclLibraries& libraries, const ncclUniqueId& id, Rank rank, Rank size);
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  ~NcclGroup() =
      default;  // the process leaves by _exit: a communicator whose kernel hangs cannot be destroyed

  Rank size() const { return size_; }

  // Returns when the communicator takes calls again; throws when it has failed.
  void settle_communicator();
  // Queues a call; its number is its own kind's: collectives and messages count apart.
  std::int64_t start(const Op& op);
  // The host waits, as with TORCH_NCCL_BLOCKING_WAIT, and writes the results. LostPeerError when the
  // communicator has failed.
  void wait(std::int64_t number, bool is_message);
  bool is_completed(std::int64_t number, bool is_message);

 private:
  // A tensor on the GPU while a call uses it.
  struct Buffer {
    void* memory = nullptr;
    std::size_t bytes = 0;
  };
  struct Call {
    Buffer sent;
    Buffer received;
    TensorList results;  // filled from `received`, in a row
  };
  using Key = std::pair<bool, std::int64_t>;

  Buffer allocate(std::size_t bytes) const;
  Buffer upload(const TensorList& tensors);
  void download(const Call& call);
  void release(Call& call) const;
  void lay_out(const Op& op, Call& call);
  void launch(const Op& op, const Call& call);
  void launch_parts(const Op& op, const Call& call);
  void drain();

  const NcclLibraries& libraries_;
  Rank rank_;
  Rank size_;
  ncclComm_t communicator_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::map<bool, std::int64_t> next_;  // by whether it is a message
  std::map<Key, Call> open_;           // started, and not waited for
};

}  // namespace rollcall::real
