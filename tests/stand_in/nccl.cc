// The part of NCCL's API that rollcall calls, according to NCCL's documentation (NCCL User Guide: Group Calls, Fault
// Tolerance, Communicator Creation and Management; API: Types). It moves and adds values in shared memory, and has no
// algorithms, protocols or networks: a program that passes here keeps to the API, but need not work on GPUs.

#include <nccl.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "tests/stand_in/arithmetic.h"
#include "tests/stand_in/communicator.h"
#include "tests/stand_in/memory.h"
#include "tests/stand_in/rules.h"

namespace rollcall::stand_in {
namespace {

using Shared = std::shared_ptr<Communicator>;

struct Communicators {
  std::mutex mutex;
  std::map<const void*, Shared> open;
};

Communicators& communicators() {
  static auto* const single = new Communicators;
  return *single;
}

ncclComm_t add(Shared communicator) {
  const std::lock_guard lock(communicators().mutex);
  Communicator* const handle = communicator.get();
  communicators().open[handle] = std::move(communicator);
  return reinterpret_cast<ncclComm_t>(handle);
}

Shared communicator_of(ncclComm_t handle) {
  enter();
  const std::lock_guard lock(communicators().mutex);
  const auto found = communicators().open.find(handle);
  require(found != communicators().open.end(),
          "a communicator was used that does not exist, or that has been aborted or destroyed");
  return found->second;
}

Shared take(ncclComm_t handle) {
  Shared communicator = communicator_of(handle);
  const std::lock_guard lock(communicators().mutex);
  communicators().open.erase(handle);
  return communicator;
}

// Uses a communicator that accepts calls, for the duration of one call.
class InUse {
 public:
  explicit InUse(ncclComm_t handle)
      : communicator_(communicator_of(handle)), lock_(communicator_->use(), std::try_to_lock) {
    require(lock_.owns_lock(), "two threads used a communicator at a time");
    require(!communicator_->is_in_progress(),
            "a communicator was used while it was ncclInProgress: ask ncclCommGetAsyncError first");
  }
  Communicator& operator*() const { return *communicator_; }
  Communicator* operator->() const { return communicator_.get(); }
  const Shared& shared() const { return communicator_; }

 private:
  Shared communicator_;
  std::unique_lock<std::mutex> lock_;
};

// A thread's open groups.
struct Group {
  int depth = 0;
  bool has_init = false;
  std::vector<std::pair<Shared, Call>> calls;
};
thread_local Group group;

bool checks_pointers() {
  const char* const wanted = std::getenv("NCCL_CHECK_POINTERS");
  return wanted != nullptr && std::atoi(wanted) != 0;
}

// The sizes that a call reads and writes in this member's memory.
struct Ranges {
  std::size_t read = 0;
  std::size_t written = 0;
};

Ranges ranges_of(const Communicator& communicator, const Call& call) {
  const std::size_t bytes = call.count * size_of(call.type);
  const std::size_t all = bytes * static_cast<std::size_t>(communicator.size());
  const bool is_root = communicator.rank() == call.root;
  switch (call.function) {
    case Function::all_reduce:
      return {bytes, bytes};
    case Function::broadcast:
      return {is_root ? bytes : 0, bytes};
    case Function::reduce:
      return {bytes, is_root ? bytes : 0};
    case Function::all_gather:
      return {bytes, all};
    case Function::reduce_scatter:
      return {all, bytes};
    case Function::send:
      return {bytes, 0};
    case Function::recv:
      return {0, bytes};
  }
  return {};
}

// False if NCCL has been asked to check pointers, and itself finds the buffer wrong.
bool check_buffer(const Communicator& communicator, const void* address, std::size_t bytes) {
  if (bytes == 0) {
    return true;
  }
  const int device = device_of(address, bytes);
  if (device == communicator.device()) {
    return true;
  }
  if (checks_pointers()) {
    return false;
  }
  require(is_device_memory(address), "NCCL was given memory of the host");
  require(device >= 0, "NCCL was given less memory than the call needs, or memory that has been freed");
  break_off("NCCL was given memory of another GPU");
}

std::optional<ncclResult_t> wrong_argument(const Communicator& communicator, const Call& call) {
  const bool has_root =
      call.function == Function::broadcast || call.function == Function::reduce || is_message(call.function);
  if (has_root && (call.root < 0 || call.root >= communicator.size())) {
    return ncclInvalidArgument;
  }
  if (size_of(call.type) == 0 || (call.op >= ncclNumOps && !communicator.factors.contains(call.op))) {
    return ncclInvalidArgument;
  }
  const Ranges ranges = ranges_of(communicator, call);
  if (!check_buffer(communicator, call.from, ranges.read) ||
      !check_buffer(communicator, call.into, ranges.written)) {
    return ncclInvalidArgument;
  }
  return std::nullopt;
}

// A member's messages to itself meet within one group, or never.
bool meets_itself(const Communicator& communicator, const std::vector<Call>& calls) {
  std::ptrdiff_t balance = 0;
  for (const Call& call : calls) {
    if (is_message(call.function) && call.root == communicator.rank()) {
      balance += call.function == Function::send ? 1 : -1;
    }
  }
  return balance == 0;
}

ncclResult_t launch(std::vector<std::pair<Shared, Call>> calls) {
  std::vector<std::pair<Shared, std::vector<Call>>> by_communicator;
  for (auto& [communicator, call] : calls) {
    auto found = by_communicator.begin();
    while (found != by_communicator.end() && found->first != communicator) {
      ++found;
    }
    if (found == by_communicator.end()) {
      found = by_communicator.insert(found, {communicator, {}});
    }
    found->second.push_back(std::move(call));
  }
  ncclResult_t result = ncclSuccess;
  for (auto& [communicator, own] : by_communicator) {
    if (!meets_itself(*communicator, own)) {
      return ncclInvalidUsage;
    }
    const ncclResult_t launched = communicator->launch(std::move(own));
    result = launched == ncclSuccess ? result : launched;
  }
  return result;
}

ncclResult_t enqueue(ncclComm_t handle, cudaStream_t stream, Call call) {
  if (handle == nullptr) {
    return ncclInvalidArgument;
  }
  const InUse communicator(handle);
  require(!communicator->is_finalized(), "a call was made on a communicator that had been finalized");
  if (const ncclResult_t state = communicator->state(); state != ncclSuccess) {
    return ncclInvalidUsage;
  }
  if (const std::optional<ncclResult_t> wrong = wrong_argument(*communicator, call)) {
    return *wrong;
  }
  call.stream = stream_of(stream);
  require(call.stream->device() == communicator->device(), "NCCL was given a stream of another GPU");
  require(!call.stream->is_held(), "NCCL was given a stream on which another kernel had not been issued");
  if (const auto factor = communicator->factors.find(call.op); factor != communicator->factors.end()) {
    call.scales = true;
    call.factor = factor->second;
  }
  if (call.count == 0 && !is_message(call.function)) {
    return ncclSuccess;
  }
  if (group.depth == 0) {
    return launch({{communicator.shared(), call}});
  }
  require(!group.has_init, "a group held the start of a communicator and calls");
  group.calls.emplace_back(communicator.shared(), call);
  return ncclSuccess;
}

struct Id {
  char mark[8] = {'s', 't', 'a', 'n', 'd', '-', 'i', 'n'};
  Address address;
};
static_assert(sizeof(Id) <= sizeof(ncclUniqueId));

bool blocks(const ncclConfig_t* config) { return config == nullptr || config->blocking != 0; }

ncclResult_t start(ncclComm_t* handle, const std::shared_ptr<Communicator>& communicator) {
  *handle = add(communicator);
  return communicator->connect();
}

}  // namespace
}  // namespace rollcall::stand_in

using namespace rollcall::stand_in;

extern "C" {

// Tells callers that this is not NCCL.
int rollcallStandIn() { return 1; }

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  enter();
  Id made;
  made.address = make_rendezvous();
  std::memset(id->internal, 0, sizeof id->internal);
  std::memcpy(id->internal, &made, sizeof made);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* handle, int size, ncclUniqueId unique, int rank,
                                    ncclConfig_t* config) {
  enter();
  Id id;
  require(std::memcmp(unique.internal, id.mark, sizeof id.mark) == 0,
          "a unique id that ncclGetUniqueId has not made");
  std::memcpy(&id, unique.internal, sizeof id);
  if (rank < 0 || rank >= size || size > most_ranks) {
    return ncclInvalidArgument;
  }
  require(config == nullptr || config->magic == 0xcafebeef,
          "a configuration without NCCL_CONFIG_INITIALIZER");
  require(group.calls.empty(), "a group held the start of a communicator and calls");
  group.has_init = group.depth > 0;
  const auto shared = open_rendezvous(id.address);
  return shared == nullptr ? ncclSystemError
                           : start(handle, std::make_shared<Communicator>(shared, rank, size,
                                                                          current_device(), blocks(config)));
}

ncclResult_t ncclCommInitAll(ncclComm_t* handles, int count, const int* devices) {
  enter();
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < i; ++j) {
      if (devices[i] == devices[j]) {
        return ncclInvalidUsage;
      }
    }
  }
  require(handles != nullptr && count == 0, "the stand-in has no ncclCommInitAll");
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* state) {
  *state = communicator_of(handle)->state();
  return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t handle, int* count) {
  *count = InUse(handle)->size();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  const InUse communicator(handle);
  if (communicator->state() != ncclSuccess) {
    return ncclInvalidUsage;
  }
  const auto finalize = [own = communicator.shared()] {
    own->finalize();
    return ncclSuccess;
  };
  return communicator->blocks() ? finalize() : communicator->do_meanwhile(finalize);
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  require(group.depth == 0, "a communicator was destroyed inside a group");
  { const InUse last(handle); }
  take(handle)->wait_for_kernels();
  return ncclSuccess;
}

// Works in any state, and from any thread.
ncclResult_t ncclCommAbort(ncclComm_t handle) {
  take(handle)->abort();
  return ncclSuccess;
}

ncclResult_t ncclCommRevoke(ncclComm_t handle, int) {
  const InUse communicator(handle);
  communicator->wait_for_kernels();
  communicator->set_state(ncclInvalidUsage);
  return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key, ncclComm_t* part, ncclConfig_t* config) {
  const InUse communicator(handle);
  require(group.depth == 0, "the stand-in splits no communicators in groups");
  require(communicator->is_idle(), "a communicator was split while calls of it were under way");
  *part = nullptr;
  const bool part_blocks = config != nullptr ? blocks(config) : communicator->blocks();
  const auto split = [parent = communicator.shared(), color, key, part_blocks, part] {
    const auto made = parent->split(color, key, part_blocks);
    if (made == nullptr) {
      return ncclSuccess;
    }
    const ncclResult_t result = made->connect();
    std::atomic_ref(*part).store(add(made));
    return result;
  };
  return communicator->blocks() ? split() : communicator->do_meanwhile(split);
}

ncclResult_t ncclCommShrink(ncclComm_t handle, int*, int count, ncclComm_t*, ncclConfig_t*, int) {
  const InUse communicator(handle);
  require(count >= communicator->size(), "the stand-in shrinks no communicators");
  return ncclInvalidArgument;  // no member would be left
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* factor, ncclDataType_t type,
                                      ncclScalarResidence_t where, ncclComm_t handle) {
  const InUse communicator(handle);
  require(where == ncclScalarHostImmediate, "the stand-in reads factors from the host only");
  double value = 0;
  if (type == ncclFloat32) {
    float narrow = 0;
    std::memcpy(&narrow, factor, sizeof narrow);
    value = narrow;
  } else if (type == ncclFloat64) {
    std::memcpy(&value, factor, sizeof value);
  } else {
    std::vector<std::byte> sum(size_of(type));
    require(type == ncclFloat16 || type == ncclBfloat16, "a factor of a type that is not floating");
    std::memcpy(sum.data(), factor, sum.size());
    value = to_number(type, sum.data());
  }
  static std::atomic<int> next = ncclNumOps + 1;
  *op = static_cast<ncclRedOp_t>(next++);
  communicator->factors[*op] = value;
  return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t handle) {
  require(InUse(handle)->factors.erase(op) == 1,
          "an operator was destroyed that does not exist, or no longer");
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  enter();
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  enter();
  if (group.depth == 0) {
    return ncclInvalidUsage;
  }
  if (--group.depth > 0) {
    return ncclSuccess;
  }
  group.has_init = false;
  return launch(std::exchange(group.calls, {}));
}

ncclResult_t ncclAllReduce(const void* from, void* into, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return enqueue(comm, stream, {Function::all_reduce, from, into, count, type, op});
}

ncclResult_t ncclBroadcast(const void* from, void* into, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return enqueue(comm, stream, {Function::broadcast, from, into, count, type, ncclSum, root});
}

ncclResult_t ncclReduce(const void* from, void* into, size_t count, ncclDataType_t type, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return enqueue(comm, stream, {Function::reduce, from, into, count, type, op, root});
}

ncclResult_t ncclAllGather(const void* from, void* into, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return enqueue(comm, stream, {Function::all_gather, from, into, count, type});
}

ncclResult_t ncclReduceScatter(const void* from, void* into, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return enqueue(comm, stream, {Function::reduce_scatter, from, into, count, type, op});
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return enqueue(comm, stream, {Function::send, from, nullptr, count, type, ncclSum, peer});
}

ncclResult_t ncclRecv(void* into, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return enqueue(comm, stream, {Function::recv, nullptr, into, count, type, ncclSum, peer});
}
}
