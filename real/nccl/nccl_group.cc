#ifdef ROLLCALL_HAS_NCCL

#include "real/nccl/nccl_group.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <fmt/core.h>

#include "real/nccl/nccl_types.h"
#include "real/rank/recorder.h"
#include "sim/base/error.h"
#include "sim/base/expects.h"
#include "sim/c10d/apply.h"
#include "sim/tensor/elements.h"

namespace rollcall::real {
namespace {

ncclConfig_t nonblocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

ncclComm_t connect(const NcclLibraries& libraries, const ncclUniqueId& id, Rank rank, Rank size) {
  ncclConfig_t config = nonblocking();
  ncclComm_t communicator = nullptr;
  libraries.check(libraries.nccl.comm_init(&communicator, size, id, rank, &config));
  return communicator;
}

}  // namespace

NcclGroup::NcclGroup(const NcclLibraries& libraries, Gpu& gpu, const DeviceTensors& tensors,
                     ncclComm_t communicator, Rank rank, Rank size, const Meanwhile& meanwhile)
    : libraries_(libraries),
      gpu_(gpu),
      tensors_(tensors),
      rank_(rank),
      size_(size),
      communicator_(communicator) {
  settle_communicator(meanwhile);
  stream_ = gpu_.new_stream();
}

NcclGroup::NcclGroup(const NcclLibraries& libraries, Gpu& gpu, const DeviceTensors& tensors,
                     const ncclUniqueId& id, Rank rank, Rank size, const Meanwhile& meanwhile)
    : NcclGroup(libraries, gpu, tensors, connect(libraries, id, rank, size), rank, size, meanwhile) {}

std::unique_ptr<NcclGroup> NcclGroup::between(const NcclLibraries& libraries, Gpu& gpu,
                                              const DeviceTensors& tensors, const ncclUniqueId& id, Rank rank,
                                              Rank peer, const Meanwhile& meanwhile) {
  auto pair = std::make_unique<NcclGroup>(libraries, gpu, tensors, id, rank <= peer ? 0 : 1,
                                          rank == peer ? 1 : 2, meanwhile);
  pair->is_pair_ = true;
  return pair;
}

// The part's handle is filled in while this communicator is in progress, and perhaps a little later (NCCLUtils.cpp,
// NCCLComm::split).
std::unique_ptr<NcclGroup> NcclGroup::split(int part, Rank rank, Rank size) {
  decltype(ncclCommSplit)* const comm_split = libraries_.nccl.library.find("ncclCommSplit");
  ncclConfig_t config = nonblocking();
  ncclComm_t made = nullptr;
  libraries_.check(comm_split(communicator_, part, rank, &made, &config));
  settle_communicator();
  if (part == no_part) {
    return nullptr;
  }
  const std::atomic_ref<ncclComm_t> arriving(made);
  for (Patience patience; arriving.load() == nullptr; patience.pause()) {
  }
  return std::unique_ptr<NcclGroup>(new NcclGroup(libraries_, gpu_, tensors_, made, rank, size, {}));
}

ncclResult_t NcclGroup::state() {
  if (communicator_ == nullptr) {
    return ncclInvalidUsage;
  }
  ncclResult_t state = ncclSuccess;
  libraries_.check(libraries_.nccl.async_error(communicator_, &state));
  return state;
}

void NcclGroup::check_communicator() { libraries_.check(state()); }

// A nonblocking communicator accepts no further call before the last one is done.
void NcclGroup::settle_communicator(const Meanwhile& meanwhile) {
  Patience patience;
  for (ncclResult_t now = state(); now != ncclSuccess; now = state()) {
    libraries_.check(now);
    if (meanwhile) {
      meanwhile();
    }
    patience.pause();
  }
}

void NcclGroup::close() {
  if (communicator_ != nullptr) {
    libraries_.check(libraries_.nccl.comm_finalize(communicator_));
  }
  settle_communicator();  // fails if the communicator was aborted
  libraries_.check(libraries_.nccl.comm_destroy(std::exchange(communicator_, nullptr)));
}

void NcclGroup::abort() {
  if (communicator_ != nullptr) {
    libraries_.check(libraries_.nccl.comm_abort(std::exchange(communicator_, nullptr)));
  }
}

void NcclGroup::copy(void* into, const void* from, std::size_t bytes) {
  if (bytes > 0) {
    libraries_.check(libraries_.cuda.memcpy_async(into, from, bytes, cudaMemcpyDeviceToDevice, stream_));
  }
}

NcclGroup::Part NcclGroup::take_scratch(std::size_t count, std::size_t element,
                                        std::vector<MemoryPool::Block>& scratch) {
  scratch.push_back(gpu_.memory.take(count * element));
  return {scratch.back().memory, count};
}

void NcclGroup::together(const std::function<void()>& launch) {
  libraries_.check(libraries_.nccl.group_start());
  launch();
  libraries_.check(libraries_.nccl.group_end());
}

std::vector<NcclGroup::Part> NcclGroup::parts_of(const TensorList& tensors) const {
  std::vector<Part> parts;
  for (const Tensor& tensor : tensors) {
    parts.push_back(
        {tensors_.address_of(*tensor.storage()), static_cast<std::size_t>(tensor.storage()->numel)});
  }
  return parts;
}

std::vector<NcclGroup::Part> NcclGroup::cut(const Part& whole, const std::vector<std::int64_t>& counts,
                                            std::size_t element) {
  std::vector<Part> parts;
  auto* at = static_cast<std::byte*>(whole.memory);
  for (const std::int64_t count : counts) {
    parts.push_back({at, static_cast<std::size_t>(count)});
    at += static_cast<std::size_t>(count) * element;
  }
  return parts;
}

// torch makes an operator for the factor, and destroys it when the call has been launched (NCCLPreMulSumSupplement).
void NcclGroup::with_operator(const Op& op, const std::function<void(ncclRedOp_t)>& launch) {
  if (op.reduce != ReduceOp::premul_sum) {
    launch(nccl_operator_of(op.reduce, op.dtype));
    return;
  }
  const SharedLibrary& nccl = libraries_.nccl.library;
  decltype(ncclRedOpCreatePreMulSum)* const create = nccl.find("ncclRedOpCreatePreMulSum");
  decltype(ncclRedOpDestroy)* const destroy = nccl.find("ncclRedOpDestroy");
  Bits factor = encode(op.tensors.factor, op.dtype);
  ncclRedOp_t own = ncclSum;
  libraries_.check(create(&own, &factor, nccl_type_of(op.dtype), ncclScalarHostImmediate, communicator_));
  launch(own);
  settle_communicator();
  libraries_.check(destroy(own, communicator_));
}

// torch's barrier is an all_reduce of one element, a zero.
void NcclGroup::launch_barrier(Dtype dtype, std::vector<MemoryPool::Block>& scratch) {
  const Part one = take_scratch(1, size_of(dtype), scratch);
  libraries_.check(libraries_.cuda.memset_async(one.memory, 0, size_of(dtype), stream_));
  libraries_.check(libraries_.nccl.all_reduce(one.memory, one.memory, 1, nccl_type_of(dtype), ncclSum,
                                              communicator_, stream_));
}

// Each tensor is a call of its own; several form an NCCL group.
void NcclGroup::launch_in_place(const Op& op) {
  const NcclApi& nccl = libraries_.nccl;
  const ncclDataType_t type = nccl_type_of(op.dtype);
  const std::vector<Part> parts = parts_of(filled_tensors(op));
  const auto launch_all = [&](ncclRedOp_t reduce) {
    for (const auto& [memory, count] : parts) {
      if (row_of(op.kind).nccl == NcclFunction::broadcast) {
        libraries_.check(nccl.broadcast(memory, memory, count, type, op.root, communicator_, stream_));
      } else if (row_of(op.kind).nccl == NcclFunction::reduce) {
        libraries_.check(nccl.reduce(memory, memory, count, type, reduce, op.root, communicator_, stream_));
      } else {
        libraries_.check(nccl.all_reduce(memory, memory, count, type, reduce, communicator_, stream_));
      }
    }
  };
  if (!has_reduce_op(op.kind)) {
    launch_all(ncclSum);
  } else if (parts.size() == 1) {
    with_operator(op, launch_all);
  } else {
    with_operator(op, [&](ncclRedOp_t reduce) { together([&] { launch_all(reduce); }); });
  }
}

// Equal parts go through one tensor with all of them; parts of different sizes are broadcasts in a group
// (ProcessGroupNCCL::allgather, _broadcast_oop).
void NcclGroup::launch_gather(const Op& op, std::vector<MemoryPool::Block>& scratch) {
  const NcclApi& nccl = libraries_.nccl;
  const ncclDataType_t type = nccl_type_of(op.dtype);
  const std::size_t element = size_of(op.dtype);
  const Part own = parts_of(given_tensors(op)).front();
  const std::vector<Part> places = parts_of(filled_tensors(op));
  if (places.size() == 1 && op.tensors.outputs == nullptr) {
    libraries_.check(
        nccl.all_gather(own.memory, places.front().memory, own.count, type, communicator_, stream_));
    return;
  }
  if (op.uneven) {
    together([&] {
      for (Rank root = 0; root < size_; ++root) {
        const auto& [memory, count] = places[static_cast<std::size_t>(root)];
        libraries_.check(nccl.broadcast(root == rank_ ? own.memory : memory, memory, count, type, root,
                                        communicator_, stream_));
      }
    });
    return;
  }
  const Part all = take_scratch(own.count * places.size(), element, scratch);
  libraries_.check(nccl.all_gather(own.memory, all.memory, own.count, type, communicator_, stream_));
}

void NcclGroup::launch_reduce_scatter(const Op& op, std::vector<MemoryPool::Block>& scratch) {
  const NcclApi& nccl = libraries_.nccl;
  const ncclDataType_t type = nccl_type_of(op.dtype);
  const std::size_t element = size_of(op.dtype);
  const Part own = parts_of(filled_tensors(op)).front();
  const std::vector<Part> parts = parts_of(given_tensors(op));
  with_operator(op, [&](ncclRedOp_t reduce) {
    if (op.uneven) {
      together([&] {
        for (Rank root = 0; root < size_; ++root) {
          const auto& [memory, count] = parts[static_cast<std::size_t>(root)];
          libraries_.check(nccl.reduce(memory, root == rank_ ? own.memory : memory, count, type, reduce, root,
                                       communicator_, stream_));
        }
      });
      return;
    }
    Part all = parts.front();
    if (op.tensors.inputs != nullptr) {
      all = take_scratch(own.count * parts.size(), element, scratch);
      auto* at = static_cast<std::byte*>(all.memory);
      for (const auto& [memory, count] : parts) {
        copy(at, memory, count * element);
        at += count * element;
      }
    }
    libraries_.check(
        nccl.reduce_scatter(all.memory, own.memory, own.count, type, reduce, communicator_, stream_));
  });
}

// Operations for which NCCL has no function are sends and receives in one group.
void NcclGroup::launch_messages(const Op& op) {
  const NcclApi& nccl = libraries_.nccl;
  const ncclDataType_t type = nccl_type_of(op.dtype);
  const std::size_t element = size_of(op.dtype);
  const auto members = static_cast<std::size_t>(size_);
  const bool is_root = op.rank == op.root;
  std::vector<Part> sent(members);
  std::vector<Part> received(members);
  const std::vector<Part> given = parts_of(given_tensors(op));
  const std::vector<Part> filled = parts_of(filled_tensors(op));
  const Sizes sizes = row_of(op.kind).sizes;
  const std::vector<std::int64_t> equal(members, op.numel);
  if (sizes == Sizes::gathered) {
    sent[static_cast<std::size_t>(op.root)] = given.front();
    if (is_root) {
      received = op.tensors.outputs != nullptr ? filled : cut(filled.front(), equal, element);
    }
  } else if (sizes == Sizes::divided) {
    received[static_cast<std::size_t>(op.root)] = filled.front();
    sent = is_root ? given : sent;
  } else if (op.tensors.inputs != nullptr) {
    sent = given;
    received = filled;
  } else {
    sent = cut(given.front(), sent_parts(op, op.tensors, members), element);
    received = cut(filled.front(), expected_parts(op, op.tensors, members), element);
  }
  together([&] {
    for (Rank peer = 0; peer < size_; ++peer) {
      const Part& out = sent[static_cast<std::size_t>(peer)];
      const Part& in = received[static_cast<std::size_t>(peer)];
      if (out.count > 0) {
        libraries_.check(nccl.send(out.memory, out.count, type, peer, communicator_, stream_));
      }
      if (in.count > 0) {
        libraries_.check(nccl.recv(in.memory, in.count, type, peer, communicator_, stream_));
      }
    }
  });
}

void NcclGroup::launch(const Op& op, std::vector<MemoryPool::Block>& scratch) {
  const NcclApi& nccl = libraries_.nccl;
  if (!has_tensor(op.kind)) {
    return launch_barrier(op.dtype, scratch);
  }
  if (is_point_to_point(op.kind)) {
    Storage& tensor = *op.tensors.input;
    void* const memory = tensors_.address_of(tensor);
    const auto count = static_cast<std::size_t>(tensor.numel);
    const ncclDataType_t type = nccl_type_of(op.dtype);
    const Rank peer = is_pair_ ? size_ - 1 - rank_ : op.root;
    return libraries_.check(op.kind == OpKind::send
                                ? nccl.send(memory, count, type, peer, communicator_, stream_)
                                : nccl.recv(memory, count, type, peer, communicator_, stream_));
  }
  switch (row_of(op.kind).nccl) {
    case NcclFunction::all_reduce:
    case NcclFunction::broadcast:
    case NcclFunction::reduce:
      return launch_in_place(op);
    case NcclFunction::all_gather:
      return launch_gather(op, scratch);
    case NcclFunction::reduce_scatter:
      return launch_reduce_scatter(op, scratch);
    case NcclFunction::messages:
      return launch_messages(op);
    case NcclFunction::none:
      expects(false, "calls about groups and the store are not a communicator's");
  }
}

// Copies the parts that all_gather has put into one tensor to their places.
void NcclGroup::distribute(const Op& op, const std::vector<MemoryPool::Block>& scratch) {
  if (row_of(op.kind).nccl != NcclFunction::all_gather || scratch.empty()) {
    return;
  }
  auto* from = static_cast<const std::byte*>(scratch.back().memory);
  for (const auto& [memory, count] : parts_of(filled_tensors(op))) {
    copy(memory, from, count * size_of(op.dtype));
    from += count * size_of(op.dtype);
  }
}

}  // namespace rollcall::real

#endif
