#pragma once

// torch.distributed's _coalescing_manager: calls of one kind on one group become one call when the context ends
// (distributed_c10d.py). Gloo runs it as one allgather or as one allreduce per tensor, NCCL as one launch; either way
// the ranks meet once, with all tensors. So it is modeled as a call on one tensor that holds all of them end to end.
//
//   CoalescingManager manager({.async_ops = true});
//   manager.all_gather_into_tensor(weights, weight_shard);
//   manager.all_gather_into_tensor(biases, bias_shard);
//   manager.end();   // Python's `with` ends
//   manager.wait();

#include <vector>

#include "sim/base/site.h"
#include "sim/c10d/op_table.h"
#include "sim/c10d/process_group.h"
#include "sim/c10d/work.h"
#include "sim/tensor/tensor.h"

namespace rollcall {

struct CoalescingOptions {
  ProcessGroup group{};  // none: the world
  bool async_ops = false;
};

class CoalescingManager {
 public:
  // Throws TypeError in PyTorch 1.13, whose _coalescing_manager is for messages.
  explicit CoalescingManager(const CoalescingOptions& options = {});

  // Calls inside the context. They do nothing yet; outside the group, they warn.
  void all_reduce(const Tensor& tensor, ReduceOp op = ReduceOp::sum);
  void all_gather_into_tensor(const Tensor& output, const Tensor& input);
  void reduce_scatter_tensor(const Tensor& output, const Tensor& input, ReduceOp op = ReduceOp::sum);

  // Makes the call, and waits for it unless async_ops is set. Throws RuntimeError for calls of several kinds, and the
  // backend's errors.
  void end(Site site = Site::here());
  // cm.wait(): results are there afterwards.
  void wait();
  // The call that end() issued; is_nothing() if there was none.
  const Work& work() const { return work_; }

 private:
  struct Call {
    OpKind kind = OpKind::all_reduce;
    Tensor given;
    Tensor filled;
    ReduceOp reduce = ReduceOp::sum;
  };

  bool is_outside(OpKind kind) const;
  void check_kinds() const;
  void check_sizes() const;
  Work reduce_all(Site site) const;
  Work gather_all(Site site);
  Work reduce_scatter_all(Site site);
  TensorList given() const;
  void unpack();

  ProcessGroup group_;
  bool async_ops_;
  std::vector<Call> calls_;
  Work work_;
  Tensor packed_;  // all results end to end, until they are unpacked
};

}  // namespace rollcall
