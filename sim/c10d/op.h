#pragma once

// Op: one rank's request, as data. A rank program only produces Ops and waits on Works; the simulator, Gloo, NCCL, a
// recorder and the judge all read this one value.
//
// It is trivially copyable and small: names and texts are looked up only when a report is written.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/scope_id.h"
#include "sim/base/site.h"
#include "sim/base/time.h"
#include "sim/c10d/op_table.h"
#include "sim/c10d/stream.h"
#include "sim/tensor/device.h"
#include "sim/tensor/dtype.h"
#include "sim/tensor/tensor.h"

namespace rollcall {

using Rank = std::int32_t;
using GroupId = std::uint32_t;
inline constexpr GroupId world_group = 0;

// How the tensors of an all_to_all_single are split along their first dimension: the rows for each member, and from
// each. Empty means equal parts.
struct SplitSizes {
  std::vector<std::int64_t> output;
  std::vector<std::int64_t> input;
};

// The tensors of a collective, borrowed from the caller until its Work has completed (the engine
// keeps its own references for asynchronous calls).
struct OpTensors {
  OpTensors() = default;
  // Not an aggregate: the compiler would clear it first, which costs more than the rest of a call's Op.
  explicit OpTensors(Storage* given, double times = 1) : input(given), factor(times) {}

  Storage* input = nullptr;   // the tensor given; all_reduce and broadcast write it too
  Storage* output = nullptr;  // *_into_tensor, reduce_scatter*, all_to_all_single, scatter; all_gather
                              // whose places lie end to end
  const TensorList* inputs = nullptr;   // *_coalesced, reduce_scatter, all_to_all, scatter's list on the root
  const TensorList* outputs = nullptr;  // all_gather (otherwise), all_to_all, gather's list on the root
  const SplitSizes* splits = nullptr;   // all_to_all_single; null: equal parts
  double factor = 1;                    // ReduceOp::premul_sum: what this member's input is multiplied by
};

struct Op {
  OpKind kind = OpKind::barrier;
  Dtype dtype = Dtype::float32;
  ReduceOp reduce = ReduceOp::sum;
  bool async_op = false;
  bool shadow = false;     // issued by a rank that has joined, on behalf of its hooks
  bool malformed = false;  // some backend refuses these arguments: see argument_error
  bool uneven = false;     // has parts of different sizes: members may differ in numel
  Stream stream;           // the stream current in the caller; it works on a GPU
  Device device;           // where the input lives
  GroupId group = world_group;
  Rank rank = 0;   // of the caller, inside the group
  Rank root = -1;  // src or dst, inside the group; -1: none
  ScopeId scope = no_scope;
  std::int32_t tag = 0;  // point to point only
  // Elements of the input (of the whole list, where there is one). For calls about groups, the backend's number for the
  // list of ranks that they name; equal lists have equal numbers.
  std::int64_t numel = 0;
  Site site;
  OpTensors tensors;  // last: without it, what members agree on fits a cache line
};

// The tensors that the call only reads, and those that it writes. A call that works in place reads what it writes, and
// reads no others.
TensorList given_tensors(const Op& op);
TensorList filled_tensors(const Op& op);

// "all_reduce(numel=4, float32, SUM)": what the judge compares between ranks.
std::string describe(const Op& op);

}  // namespace rollcall
