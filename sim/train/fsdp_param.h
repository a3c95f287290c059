#pragma once

// A parameter that fully_shard has split along its first dimension
// (torch/distributed/fsdp/_fully_shard/_fsdp_param.py). Every rank keeps ceil(rows / ranks) rows; the last ranks keep
// fewer, or none, and pad what they send with rows that are never read.

#include <cstdint>
#include <optional>
#include <string>

#include "sim/c10d/op.h"
#include "sim/train/module.h"

namespace rollcall {

// torch.distributed.fsdp.MixedPrecisionPolicy, as far as it affects collectives.
struct MixedPrecisionPolicy {
  std::optional<Dtype> param_dtype{};   // of all_gathers, and so of gradients
  std::optional<Dtype> reduce_dtype{};  // of gradients while they are reduced

  friend bool operator==(const MixedPrecisionPolicy&, const MixedPrecisionPolicy&) = default;
};

class FsdpParam {
 public:
  // Keeps this rank's rows of `whole`. Throws ValueError for a scalar.
  FsdpParam(const Parameter& whole, Rank shard_rank, Rank shard_size);

  // What the optimizer updates: this rank's rows, and their reduced gradient.
  Parameter sharded;

  const Shape& shape() const { return shape_; }
  bool requires_grad() const { return sharded.requires_grad; }
  // Elements that each rank sends: its rows and the padding.
  std::int64_t padded_numel() const { return padded_rows_ * row_numel_; }
  // Elements of the rows that `rank` keeps, and of those before them.
  std::int64_t numel_of(Rank rank) const;
  std::int64_t offset_of(Rank rank) const;

  // This rank's rows as they are sent.
  Tensor padded_rows() const;

  void init_dtypes(const MixedPrecisionPolicy& policy);
  Dtype dtype() const { return sharded.value.dtype(); }
  Dtype compute_dtype() const {
    return param_dtype_.value_or(dtype());
  }  // of the whole parameter and its gradient
  std::optional<Dtype> reduce_dtype() const { return reduce_dtype_; }  // empty: the gradient's own

  // The gradient of the whole parameter, as autograd accumulates it.
  void accumulate(const Tensor& gradient);
  // A backward that does not reduce leaves the gradient in the reduce dtype.
  void keep_accumulated();
  void merge_accumulated();
  // Returns and clears the gradient for the next reduction; a null tensor if there is none.
  Tensor take_gradient();
  Tensor zero_gradient() const;

  // The tensor for the next reduced gradient: one without readers, whose values may be overwritten.
  Tensor gradient_slot();
  void add_gradient(Tensor gradient);

  bool was_unsharded = false;  // torch makes the whole parameter at the first all_gather

 private:
  Shape shape_;
  std::int64_t rows_ = 0;
  std::int64_t row_numel_ = 0;
  std::int64_t padded_rows_ = 0;
  std::optional<Dtype> param_dtype_;
  std::optional<Dtype> reduce_dtype_;
  Tensor unsharded_grad_;
  Tensor accumulated_grad_;
  Tensor spare_;  // a gradient's storage, reused after zero_grad
};

}  // namespace rollcall
