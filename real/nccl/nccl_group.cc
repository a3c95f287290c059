#ifdef ROLLCALL_HAS_NCCL

#include "real/nccl/nccl_group.h"

#include <cstring>
#include <thread>

#include <fmt/core.h>

#include "real/nccl/nccl_types.h"
#include "real/rank/recorder.h"
#include "sim/base/error.h"
#include "sim/base/expects.h"
#include "sim/c10d/apply.h"

namespace rollcall::real {
namespace {

constexpr auto poll_interval = std::chrono::microseconds(50);

std::size_t bytes_of(const TensorList& tensors) {
  std::size_t bytes = 0;
  for (const Tensor& tensor : tensors) {
    bytes += static_cast<std::size_t>(tensor.storage()->bytes());
  }
  return bytes;
}

}  // namespace

void NcclLibraries::check(cudaError_t result) const {
  if (result != cudaSuccess) {
    throw RuntimeError(fmt::format("CUDA error: {}", cuda.error_string(result)));
  }
}

void NcclLibraries::check(ncclResult_t result) const {
  if (result == ncclRemoteError) {
    throw LostPeerError(fmt::format("NCCL error: {}", nccl.error_string(result)));
  }
  if (result != ncclSuccess && result != ncclInProgress) {
    throw Error("torch.distributed.DistBackendError",
                fmt::format("NCCL error: {}", nccl.error_string(result)));
  }
}

NcclGroup::NcclGroup(const NcclLibraries& libraries, const ncclUniqueId& id, Rank rank, Rank size)
    : libraries_(libraries), rank_(rank), size_(size) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  libraries_.check(libraries_.nccl.comm_init(&communicator_, size, id, rank, &config));
  settle_communicator();
  libraries_.check(libraries_.cuda.stream_create(&stream_, cudaStreamNonBlocking));
}

// A nonblocking communicator takes no further call before the last one is through.
void NcclGroup::settle_communicator() {
  for (ncclResult_t state = ncclInProgress; state == ncclInProgress;) {
    libraries_.check(libraries_.nccl.async_error(communicator_, &state));
    libraries_.check(state);
    if (state == ncclInProgress) {
      std::this_thread::sleep_for(poll_interval);
    }
  }
}

NcclGroup::Buffer NcclGroup::allocate(std::size_t bytes) const {
  Buffer buffer{nullptr, bytes};
  if (bytes > 0) {
    libraries_.check(libraries_.cuda.malloc(&buffer.memory, bytes));
  }
  return buffer;
}

NcclGroup::Buffer NcclGroup::upload(const TensorList& tensors) {
  const Buffer buffer = allocate(bytes_of(tensors));
  auto* target = static_cast<std::byte*>(buffer.memory);
  for (const Tensor& tensor : tensors) {
    Storage& storage = *tensor.storage();
    const auto bytes = static_cast<std::size_t>(storage.bytes());
    if (bytes > 0) {  // from pageable memory: the copy has been taken when the call returns
      libraries_.check(
          libraries_.cuda.memcpy_async(target, storage.make_dense(), bytes, cudaMemcpyHostToDevice, stream_));
      storage.collapse_if_uniform();
    }
    target += bytes;
  }
  return buffer;
}

void NcclGroup::lay_out(const Op& op, Call& call) {
  if (!has_tensor(op.kind)) {  // torch's barrier is an all_reduce of one float
    call.sent = call.received = upload({Tensor::zeros({1})});
    return;
  }
  call.results = filled_tensors(op);
  if (!is_point_to_point(op.kind) && works_in_place(op.kind)) {
    call.sent = call.received = upload(call.results);
    return;
  }
  call.sent = upload(given_tensors(op));
  call.received = allocate(bytes_of(call.results));
}

// What NCCL has no function for: sends and receives in one group.
void NcclGroup::launch_parts(const Op& op, const Call& call) {
  const NcclApi& nccl = libraries_.nccl;
  const std::size_t element = size_of(op.dtype);
  const auto members = static_cast<std::size_t>(size_);
  std::vector<std::int64_t> sent(members, 0);
  std::vector<std::int64_t> expected(members, 0);
  const auto root = static_cast<std::size_t>(std::max<Rank>(op.root, 0));
  const OpRow& row = row_of(op.kind);
  if (row.sizes == Sizes::gathered) {
    sent[root] = op.numel;
    expected.assign(members, op.rank == op.root ? op.numel : 0);
  } else if (row.sizes == Sizes::divided) {
    expected[root] = op.numel;
    sent.assign(members, op.rank == op.root ? op.numel : 0);
  } else {
    sent = sent_parts(op, op.tensors, members);
    expected = expected_parts(op, op.tensors, members);
  }
  const auto* from = static_cast<const std::byte*>(call.sent.memory);
  auto* into = static_cast<std::byte*>(call.received.memory);
  libraries_.check(nccl.group_start());
  for (Rank peer = 0; peer < size_; ++peer) {
    const auto out = static_cast<std::size_t>(sent[static_cast<std::size_t>(peer)]);
    const auto in = static_cast<std::size_t>(expected[static_cast<std::size_t>(peer)]);
    if (out > 0) {
      libraries_.check(nccl.send(from, out, nccl_type_of(op.dtype), peer, communicator_, stream_));
    }
    if (in > 0) {
      libraries_.check(nccl.recv(into, in, nccl_type_of(op.dtype), peer, communicator_, stream_));
    }
    from += out * element;
    into += in * element;
  }
  libraries_.check(nccl.group_end());
}

void NcclGroup::launch(const Op& op, const Call& call) {
  const NcclApi& nccl = libraries_.nccl;
  const std::size_t element = has_tensor(op.kind) ? size_of(op.dtype) : sizeof(float);
  const std::size_t sent = call.sent.bytes / element;
  const std::size_t received = call.received.bytes / element;
  const auto type = [&] { return has_tensor(op.kind) ? nccl_type_of(op.dtype) : ncclFloat32; };
  const auto reduce = [&] { return has_tensor(op.kind) ? nccl_operator_of(op.reduce) : ncclSum; };
  switch (row_of(op.kind).nccl) {
    case NcclFunction::all_reduce:
      return libraries_.check(nccl.all_reduce(call.sent.memory, call.received.memory, sent, type(), reduce(),
                                              communicator_, stream_));
    case NcclFunction::broadcast:
      return libraries_.check(nccl.broadcast(call.sent.memory, call.received.memory, sent, type(), op.root,
                                             communicator_, stream_));
    case NcclFunction::reduce:
      return libraries_.check(nccl.reduce(call.sent.memory, call.received.memory, sent, type(), reduce(),
                                          op.root, communicator_, stream_));
    case NcclFunction::all_gather:
      return libraries_.check(
          nccl.all_gather(call.sent.memory, call.received.memory, sent, type(), communicator_, stream_));
    case NcclFunction::reduce_scatter:
      return libraries_.check(nccl.reduce_scatter(call.sent.memory, call.received.memory, received, type(),
                                                  reduce(), communicator_, stream_));
    case NcclFunction::messages:
      break;
    case NcclFunction::none:
      expects(false, "calls about groups and the store are not a communicator's");
  }
  if (!is_point_to_point(op.kind)) {
    launch_parts(op, call);
  } else if (op.kind == OpKind::send) {
    libraries_.check(nccl.send(call.sent.memory, sent, type(), op.root, communicator_, stream_));
  } else {
    libraries_.check(nccl.recv(call.received.memory, received, type(), op.root, communicator_, stream_));
  }
}

std::int64_t NcclGroup::start(const Op& op) {
  Call call;
  lay_out(op, call);
  launch(op, call);
  settle_communicator();
  const bool is_message = is_point_to_point(op.kind);
  const std::int64_t number = next_[is_message]++;
  open_.emplace(Key{is_message, number}, std::move(call));
  return number;
}

void NcclGroup::drain() {
  for (;;) {
    const cudaError_t state = libraries_.cuda.stream_query(stream_);
    if (state == cudaSuccess) {
      return;
    }
    if (state != cudaErrorNotReady) {
      libraries_.check(state);
    }
    ncclResult_t error = ncclSuccess;
    libraries_.check(libraries_.nccl.async_error(communicator_, &error));
    libraries_.check(error);
    std::this_thread::sleep_for(poll_interval);
  }
}

void NcclGroup::download(const Call& call) {
  const auto* source = static_cast<const std::byte*>(call.received.memory);
  for (const Tensor& tensor : call.results) {
    Storage& storage = *tensor.storage();
    const auto bytes = static_cast<std::size_t>(storage.bytes());
    if (bytes > 0) {
      libraries_.check(
          libraries_.cuda.memcpy_async(storage.make_dense(), source, bytes, cudaMemcpyDeviceToHost, stream_));
    }
    source += bytes;
  }
  drain();
  for (const Tensor& tensor : call.results) {
    tensor.storage()->collapse_if_uniform();
  }
}

void NcclGroup::release(Call& call) const {
  libraries_.check(libraries_.cuda.free(call.sent.memory));
  if (call.received.memory != call.sent.memory) {
    libraries_.check(libraries_.cuda.free(call.received.memory));
  }
}

// A stream is done in order: what was queued before is done as well, and is written back first.
void NcclGroup::wait(std::int64_t number, bool is_message) {
  const auto found = open_.find({is_message, number});
  if (found == open_.end()) {
    return;
  }
  drain();
  download(found->second);
  release(found->second);
  open_.erase(found);
}

bool NcclGroup::is_completed(std::int64_t number, bool is_message) {
  return !open_.contains({is_message, number}) || libraries_.cuda.stream_query(stream_) == cudaSuccess;
}

}  // namespace rollcall::real

#endif
