#pragma once

// NcclGroup: a process group's communicator in nonblocking mode, of all its members or of two of them, and the stream
// of its own on which its calls run one after the other, as ProcessGroupNCCL has it.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "real/nccl/gpu.h"
#include "sim/c10d/op.h"

namespace rollcall::real {

class NcclGroup {
 public:
  // All block until all members have come. The current device is the rank's GPU. `id` is the same on all. `meanwhile`
  // is called again and again.
  using Meanwhile = std::function<void()>;
  NcclGroup(const NcclLibraries& libraries, Gpu& gpu, const ncclUniqueId& id, Rank rank, Rank size,
            const Meanwhile& meanwhile);
  // The one that `rank` and `peer` of a group send each other messages through, and nothing else.
  static std::shared_ptr<NcclGroup> between(const NcclLibraries& libraries, Gpu& gpu, const ncclUniqueId& id,
                                            Rank rank, Rank peer, const Meanwhile& meanwhile);
  // A call of all members. Those who name the same part form it, in the order of their ranks. Null: no_part was named.
  std::shared_ptr<NcclGroup> split(int part, Rank rank, Rank size);
  static constexpr int no_part = NCCL_SPLIT_NOCOLOR;
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  // The communicator stays: close() or abort() end it, or the process.
  ~NcclGroup() = default;

  Rank size() const { return size_; }
  cudaStream_t stream() const { return stream_; }

  // Where the call's tensors are on the GPU.
  using Locate = std::function<void*(Storage& tensor)>;
  // Launches a call, perhaps inside of a group of NCCL's. A barrier's dtype is that of its one element. What the call
  // needs besides the tensors is taken from the GPU's memory, added to `scratch`, and must stay until it is over.
  void launch(const Op& op, const Locate& locate, std::vector<MemoryPool::Block>& scratch);

  // When the communicator is settled: copies results to where they belong.
  void distribute(const Op& op, const Locate& locate, const std::vector<MemoryPool::Block>& scratch);

  // Returns when the communicator takes calls again, and what has been launched is in its stream; throws when it has
  // failed.
  void settle_communicator(const Meanwhile& meanwhile = {});
  // Throws when it has failed meanwhile.
  void check_communicator();

  // Nothing runs on it: it goes. A call of all members, as ncclCommFinalize is.
  void close();
  // What runs on it ends. From any thread.
  void abort();
  // The same, by a watchdog that is about to end the process: the rank's own thread waits for that.
  void abort_with_process();

 private:
  struct Part {
    void* memory = nullptr;
    std::size_t count = 0;  // of elements
  };
  // Of a communicator that has been asked for.
  NcclGroup(const NcclLibraries& libraries, Gpu& gpu, ncclComm_t communicator, Rank rank, Rank size,
            const Meanwhile& meanwhile);
  std::vector<Part> parts_of(const TensorList& tensors, const Locate& locate) const;
  static std::vector<Part> cut(const Part& whole, const std::vector<std::int64_t>& counts,
                               std::size_t element);

  void launch_barrier(Dtype dtype, std::vector<MemoryPool::Block>& scratch);
  void launch_in_place(const Op& op, const Locate& locate);
  void launch_gather(const Op& op, const Locate& locate, std::vector<MemoryPool::Block>& scratch);
  void launch_reduce_scatter(const Op& op, const Locate& locate, std::vector<MemoryPool::Block>& scratch);
  void launch_messages(const Op& op, const Locate& locate);
  void copy(void* into, const void* from, std::size_t bytes);
  Part take_scratch(std::size_t count, std::size_t element, std::vector<MemoryPool::Block>& scratch);
  // Calls `launch` with the operator, which may be one of this communicator's own.
  void with_operator(const Op& op, const std::function<void(ncclRedOp_t)>& launch);
  // As one of NCCL's groups.
  void together(const std::function<void()>& launch);
  ncclResult_t state();

  const NcclLibraries& libraries_;
  Gpu& gpu_;
  Rank rank_;
  Rank size_;
  std::mutex use_;                     // of the communicator: the watchdog may end it
  ncclComm_t communicator_ = nullptr;  // null: ended
  bool is_pair_ = false;
  bool ends_with_process_ = false;
  cudaStream_t stream_ = nullptr;
};

}  // namespace rollcall::real
