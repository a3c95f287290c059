#pragma once

// NcclGroup: a process group's communicator in nonblocking mode, of all its members or of two of them, with its own
// stream on which its calls run one after the other, like in ProcessGroupNCCL.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "real/nccl/device_tensors.h"
#include "real/nccl/gpu.h"
#include "sim/c10d/op.h"

namespace rollcall::real {

class NcclGroup {
 public:
  // All of these block until all members have connected. The current device is the rank's GPU. `id` is the same on all
  // members. `meanwhile` is called repeatedly.
  using Meanwhile = std::function<void()>;
  NcclGroup(const NcclLibraries& libraries, Gpu& gpu, const DeviceTensors& tensors, const ncclUniqueId& id,
            Rank rank, Rank size, const Meanwhile& meanwhile);
  // The communicator of `rank` and `peer` of a group, for messages between the two only.
  static std::unique_ptr<NcclGroup> between(const NcclLibraries& libraries, Gpu& gpu,
                                            const DeviceTensors& tensors, const ncclUniqueId& id, Rank rank,
                                            Rank peer, const Meanwhile& meanwhile);
  // Called by all members. Members that name the same part form it, in the order of their ranks. Null if `part` is
  // no_part.
  std::unique_ptr<NcclGroup> split(int part, Rank rank, Rank size);
  static constexpr int no_part = NCCL_SPLIT_NOCOLOR;
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  // Does not end the communicator: close(), abort() or the end of the process does.
  ~NcclGroup() = default;

  cudaStream_t stream() const { return stream_; }

  // Launches a call, whose tensors are in use, perhaps inside an NCCL group. A barrier's dtype is that of its one
  // element. The GPU memory that the call needs besides the tensors is added to `scratch` and must stay until the call
  // is over.
  void launch(const Op& op, std::vector<MemoryPool::Block>& scratch);

  // Copies results to where they belong. The communicator must be settled.
  void distribute(const Op& op, const std::vector<MemoryPool::Block>& scratch);

  // Returns when the communicator accepts calls again and all launched calls are in its stream. Throws if it has
  // failed.
  void settle_communicator(const Meanwhile& meanwhile = {});
  // Throws if it has failed meanwhile.
  void check_communicator();

  // Ends the communicator, on which nothing may run. Called by all members, like ncclCommFinalize.
  void close();
  // Aborts all calls on it.
  void abort();

 private:
  struct Part {
    void* memory = nullptr;
    std::size_t count = 0;  // of elements
  };
  // For a communicator whose creation has started.
  NcclGroup(const NcclLibraries& libraries, Gpu& gpu, const DeviceTensors& tensors, ncclComm_t communicator,
            Rank rank, Rank size, const Meanwhile& meanwhile);
  std::vector<Part> parts_of(const TensorList& tensors) const;
  static std::vector<Part> cut(const Part& whole, const std::vector<std::int64_t>& counts,
                               std::size_t element);

  void launch_barrier(Dtype dtype, std::vector<MemoryPool::Block>& scratch);
  void launch_in_place(const Op& op);
  void launch_gather(const Op& op, std::vector<MemoryPool::Block>& scratch);
  void launch_reduce_scatter(const Op& op, std::vector<MemoryPool::Block>& scratch);
  void launch_messages(const Op& op);
  void copy(void* into, const void* from, std::size_t bytes);
  Part take_scratch(std::size_t count, std::size_t element, std::vector<MemoryPool::Block>& scratch);
  // Calls `launch` with the operator, which may be specific to this communicator.
  void with_operator(const Op& op, const std::function<void(ncclRedOp_t)>& launch);
  // Calls `launch` inside an NCCL group.
  void together(const std::function<void()>& launch);
  ncclResult_t state();

  const NcclLibraries& libraries_;
  Gpu& gpu_;
  const DeviceTensors& tensors_;
  Rank rank_;
  Rank size_;
  ncclComm_t communicator_ = nullptr;  // null: ended
  bool is_pair_ = false;
  cudaStream_t stream_ = nullptr;
};

}  // namespace rollcall::real
