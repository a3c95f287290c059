#include "scenarios/prove/programs.h"

#include "sim/c10d/rank_context.h"
#include "sim/dist.h"

namespace rollcall::prove {
namespace {

constexpr std::int64_t small = 8;         // one chunk of any protocol
constexpr std::int64_t large = 16 << 20;  // 64 MiB of float32: many chunks, and another protocol

Tensor tensor_of(std::int64_t numel, double value = 1, Dtype dtype = Dtype::float32) {
  return Tensor::full({numel}, value, dtype, this_rank().device);
}

TensorList tensors_of(std::int64_t count, std::int64_t numel) {
  TensorList list;
  for (std::int64_t i = 0; i < count; ++i) {
    list.push_back(tensor_of(numel, 0));
  }
  return list;
}

void other_operation(Rank rank) {
  if (rank == 0) {
    all_reduce(tensor_of(large));
  } else {
    broadcast(tensor_of(large), 0);
  }
}

void other_small_count(Rank rank) { all_reduce(tensor_of(rank == 0 ? small : 2 * small)); }
void other_large_count(Rank rank) { all_reduce(tensor_of(rank == 0 ? small : large)); }
void other_dtype(Rank rank) {
  all_reduce(tensor_of(small, rank + 1, rank == 0 ? Dtype::float32 : Dtype::int32));
}
void wider_dtype(Rank rank) {
  all_reduce(tensor_of(small, rank + 1, rank == 0 ? Dtype::float32 : Dtype::float64));
}
void other_operator(Rank rank) {
  all_reduce(tensor_of(small, rank + 2), {.op = rank == 0 ? ReduceOp::sum : ReduceOp::product});
}
void other_root(Rank rank) { broadcast(tensor_of(small, rank), rank); }

void other_order(Rank rank) {
  const Tensor gradients = tensor_of(large);
  const Tensor count = tensor_of(1);
  all_reduce(rank == 0 ? gradients : count);
  all_reduce(rank == 0 ? count : gradients);
}

void one_is_missing(Rank rank) {
  if (rank == 0) {
    all_reduce(tensor_of(small));
  }
}

void one_comes_once(Rank rank) {
  for (Rank i = 0; i < 2 - rank; ++i) {
    all_reduce(tensor_of(small));
  }
}

void other_message(Rank rank) {
  if (rank == 0) {
    send(tensor_of(2 * small), 1);
  } else {
    recv(tensor_of(small), 0);
  }
}

void both_receive(Rank rank) { recv(tensor_of(small), 1 - rank); }

constexpr Program wrong[] = {
    {"a different operation", "hangs|completes|raises", other_operation},
    {"a different count, in one chunk", "completes|hangs|raises", other_small_count},
    {"a different count, in many chunks", "hangs|completes|raises", other_large_count},
    {"a different dtype of the same size", "completes", other_dtype},
    {"a dtype of a different size", "hangs|completes|raises", wider_dtype},
    {"a different operator", "completes", other_operator},
    {"a different root", "hangs|completes", other_root},
    {"a different order", "hangs|completes|raises", other_order},
    {"a rank that never calls", "hangs|completes", one_is_missing},
    {"a rank that makes one call less", "hangs|completes", one_comes_once},
    {"a message longer than its buffer", "hangs|completes|raises", other_message},
    {"two ranks that receive from each other", "hangs", both_receive},
};

void reduces(Rank rank) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max}) {
    for (const Dtype dtype : {Dtype::float32, Dtype::float64, Dtype::int32, Dtype::int64, Dtype::uint8}) {
      all_reduce(tensor_of(1000, rank + 1, dtype), {.op = op});
      reduce(tensor_of(1000, rank + 1, dtype), 1, {.op = op});
    }
  }
}

void moves(Rank rank) {
  const Rank size = get_world_size();
  broadcast(tensor_of(1000, rank), 1);
  all_gather(tensors_of(size, 1000), tensor_of(1000, rank));
  gather(tensor_of(1000, rank), rank == 0 ? tensors_of(size, 1000) : TensorList(), 0);
  scatter(tensor_of(1000, 0), rank == 0 ? tensors_of(size, 1000) : TensorList(), 0);
  all_to_all_single(tensor_of(1000, 0), tensor_of(1000, rank));
  barrier();
}

void sends(Rank rank) {
  if (rank == 0) {
    send(tensor_of(1000, 3), 1);
  } else {
    recv(tensor_of(1000, 0), 0);
  }
}

constexpr Program right[] = {
    {"reductions", "completes", reduces}, {"moves", "completes", moves}, {"messages", "completes", sends}};

}  // namespace

std::span<const Program> wrong_programs() { return wrong; }
std::span<const Program> right_programs() { return right; }

}  // namespace rollcall::prove
