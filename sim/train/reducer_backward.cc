// Reducer: one backward pass, real or shadowed.

#include <algorithm>

#include <fmt/core.h>

#include "sim/base/error.h"
#include "sim/base/expects.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/scope.h"
#include "sim/c10d/warnings.h"
#include "sim/train/flat.h"
#include "sim/train/reducer.h"

namespace rollcall {

void Reducer::gradient_ready(std::uint32_t index, Site site) {
  if (!expects_gradients_) {
    return;  // inside no_sync: gradients only accumulate
  }
  if (detects_unused_parameters() || is_first_static_iteration()) {
    used_[index] = 1;
  }
  if (is_first_static_iteration()) {
    ++static_hooks_[index];  // everything is reduced at the end of this pass
    return;
  }
  if (!has_marked_unused_) {
    has_marked_unused_ = true;
    for (const std::uint32_t unused : unused_) {
      mark_variable_ready(unused, site);
    }
  }
  if (options_.static_graph) {
    count_static_hook(index, site);
    return;
  }
  if (should_rebuild_buckets()) {
    rebuilt_parameters_.push_back(index);
  }
  mark_variable_ready(index, site);
}

// In a static graph a parameter is ready when it has received as many gradients as in the first pass.
void Reducer::count_static_hook(std::uint32_t index, Site site) {
  if (static_hooks_left_[index] <= 0) {
    throw RuntimeError(
        "Your training graph has changed in this iteration, e.g., one parameter is unused in first "
        "iteration, "
        "but then got used in the second iteration. this is not compatible with static_graph set to True.");
  }
  if (--static_hooks_left_[index] == 0) {
    if (should_rebuild_buckets()) {
      rebuilt_parameters_.push_back(index);
    }
    mark_variable_ready(index, site);
  }
}

void Reducer::set_divide_factor() {
  if (divisor_ != 0) {
    return;
  }
  divisor_ = options_.group.size();
  if (active_ranks_ && !use_initial_world_size_) {
    forward_work_.wait();
    divisor_ = active_ranks_.item();
  }
}

void Reducer::mark_variable_ready(std::uint32_t index, Site site) {
  expects(index < parameters_.size(), "a gradient is a parameter's");
  refuse_marking_twice(index);
  ready_[index] = true;
  requires_finalize_ = true;
  set_divide_factor();
  mark_variable_ready_dense(index);
  Bucket& bucket = buckets_[places_[index].bucket];
  expects(bucket.pending > 0, "a full bucket waits for no parameter");
  if (--bucket.pending == 0 && places_[index].bucket == next_bucket_) {
    issue_full_buckets(site);
  }
  if (next_bucket_ == buckets_.size()) {
    if (detects_unused_parameters()) {
      reduce_unused_map(site);
    }
    finalize_is_queued_ = true;
  }
}

// reducer.cpp, mark_variable_ready_dense, except for the copy into the bucket, which waits until that is full.
void Reducer::mark_variable_ready_dense(std::uint32_t index) {
  Parameter& parameter = *parameters_[index];
  if (!parameter.grad) {
    // The map holds what an earlier pass left: a static graph's first pass reduces once more inside no_sync.
    if ((detects_unused_parameters() || is_first_static_iteration()) && used_[index] != 0) {
      throw RuntimeError(
          "Encountered gradient which is undefined, but still allreduced by DDP reducer. This indicates a "
          "bug in DDP implementation, please report a bug with a repro to PyTorch.");
    }
  } else if (divides_in_place() && !parameter.grad.is_meta()) {
    parameter.grad.mul_(1.0 / divisor_);
  }
}

// Buckets are issued in order: a full one waits for those before it.
void Reducer::issue_full_buckets(Site site) {
  const Scope scope("ddp.bucket", bucket_pairing_);
  for (; next_bucket_ < buckets_.size() && buckets_[next_bucket_].pending == 0; ++next_bucket_) {
    Bucket& bucket = buckets_[next_bucket_];
    bucket.future = {};
    if (!skips(bucket)) {
      fill(bucket);
      bucket.future = reduce(next_bucket_, bucket.contents, site);
    }
  }
}

// skip_all_reduce_unused_params: each rank decides by what it found unused itself. The first pass of a static graph
// reduces everything, because the unused parameters are not known before its end.
bool Reducer::skips(const Bucket& bucket) const {
  if (!options_.skip_unused || is_first_static_iteration()) {
    return false;
  }
  return std::ranges::all_of(bucket.variables, [this](std::uint32_t variable) {
    return std::ranges::find(unused_, variable) != unused_.end();
  });
}

BucketFuture Reducer::reduce(std::size_t index, const Tensor& contents, Site site) const {
  if (hook_) {
    return hook_({.index = index, .buffer = contents, .site = site}, options_.group);
  }
  return {.work = all_reduce(contents, {.group = options_.group, .async_op = true}, site),
          .result = contents};
}

// The parameters' gradients, divided if they are not yet; zeros for a parameter that has none. A hook does its own
// division.
void Reducer::fill(Bucket& bucket) const {
  if (!fill_with_one_value(bucket)) {
    TensorList gradients;
    for (const std::uint32_t variable : bucket.variables) {
      const Parameter& parameter = *parameters_[variable];
      const Tensor& value = parameter.value;
      gradients.push_back(parameter.grad ? parameter.grad
                                         : Tensor::zeros(value.shape(), value.dtype(), value.device()));
    }
    bucket.contents = flatten(gradients);
  }
  expects(divisor_ > 0 || hook_, "the divisor is known when a bucket is filled");
  if (!hook_ && !divides_in_place() && !bucket.contents.is_meta()) {
    bucket.contents.mul_(1.0 / divisor_);
  }
}

// The common case, without allocations: all gradients have one value.
bool Reducer::fill_with_one_value(Bucket& bucket) const {
  const Tensor& first = parameters_[bucket.variables.front()]->grad;
  for (const std::uint32_t variable : bucket.variables) {
    const Tensor& gradient = parameters_[variable]->grad;
    if (!gradient || gradient.settle().storage()->form != Storage::Form::uniform ||
        gradient.storage()->value != first.storage()->value) {
      return false;
    }
  }
  const bool is_mine =
      bucket.contents && bucket.contents.storage()->references.load(std::memory_order_relaxed) == 1;
  if (!is_mine) {
    bucket.contents = zeros_like(bucket);
  }
  bucket.contents.settle().storage()->set_uniform(first.storage()->value);
  return true;
}

Tensor Reducer::zeros_like(const Bucket& bucket) const {
  std::int64_t numel = 0;
  for (const std::uint32_t variable : bucket.variables) {
    numel += parameters_[variable]->value.numel();
  }
  const Tensor& first = parameters_[bucket.variables.front()]->value;
  return Tensor::zeros({numel}, first.dtype(), first.device());
}

void Reducer::reduce_unused_map(Site site) {
  const Scope scope("ddp.unused_bitmap", unused_pairing_);
  used_everywhere_ = int_tensor(used_, used_everywhere_.device());
  used_work_ = all_reduce(used_everywhere_, {.group = options_.group, .async_op = true}, site);
}

void Reducer::finish_backward(Site site) {
  if (is_first_static_iteration()) {
    reduce_delayed(site);  // inside no_sync too: distributed.py, _DDPSink, checks the iteration only
  } else if (finalize_is_queued_) {
    if (options_.static_graph && should_rebuild_buckets()) {
      rebuilt_parameters_.insert(rebuilt_parameters_.end(), unused_.begin(), unused_.end());
    }
    finalize_backward();
  }
}

// The first pass of a static graph: which parameters are used is only known at its end.
void Reducer::reduce_delayed(Site site) {
  reduce_unused_map(site);
  unused_.clear();
  for (std::uint32_t index = 0; index < parameters_.size(); ++index) {
    if (static_hooks_[index] == 0) {
      unused_.push_back(index);
    }
    requires_finalize_ = true;
    set_divide_factor();
    mark_variable_ready_dense(index);
  }
  next_bucket_ = 0;
  for (Bucket& bucket : buckets_) {
    bucket.pending = 0;
  }
  issue_full_buckets(site);
  if (!expects_gradients_) {
    throw RuntimeError(
        "expect_autograd_hooks_ INTERNAL ASSERT FAILED at "
        "\"./torch/csrc/distributed/c10d/reducer.cpp\":1490, please report a bug to PyTorch. ");
  }
  finalize_backward();
}

void Reducer::finalize_backward() {
  expects_gradients_ = false;
  requires_finalize_ = false;
  finalize_is_queued_ = false;
  if (!hook_) {
    // On a GPU the buckets complete in order: after waiting for the last one, the host need not stop at each of them.
    const auto last = std::ranges::find_if(buckets_.rbegin(), buckets_.rend(),
                                           [](const Bucket& bucket) { return bool(bucket.future.result); });
    if (last != buckets_.rend()) {
      last->contents.settle();
    }
  }
  for (Bucket& bucket : buckets_) {
    if (!bucket.future.result) {
      continue;  // skipped
    }
    bucket.future.work.wait();
    if (bucket.future.then) {
      bucket.future.then();
    }
    divisor_ = 0;
    finalize_bucket(bucket);
  }
  if ((detects_unused_parameters() || is_first_static_iteration()) && !used_is_reduced_) {
    used_work_.wait();
  }
  if (detects_unused_parameters()) {
    used_.assign(used_.size(), 0);
    used_is_reduced_ = false;
  }
}

// Gives the averages to the parameters. A parameter that no rank used keeps its gradient, or its lack of one.
void Reducer::finalize_bucket(Bucket& bucket) {
  const Tensor result = std::exchange(bucket.future, {}).result;  // bucket.contents, or a hook's own
  std::int64_t offset = 0;
  for (const std::uint32_t variable : bucket.variables) {
    Parameter& parameter = *parameters_[variable];
    const bool is_untouched = !used_.empty() && is_globally_unused(variable);
    // A gradient that is a view of its bucket was reduced with it, whichever rank used it.
    if (!is_untouched || (options_.gradient_as_bucket_view && parameter.grad)) {
      if (parameter.grad) {
        unflatten_from(result, offset, parameter.grad);
      } else {
        parameter.grad = slice(result, offset, parameter.value.shape());
      }
      parameter.missed_gradient = false;
    }
    offset += parameter.value.numel();
  }
  expects(offset == result.numel(), "a bucket is as long as its parameters");
}

// Asks the other ranks only when this one did not use the parameter: most passes never wait for the map.
bool Reducer::is_globally_unused(std::uint32_t index) {
  if (used_[index] == 0 && !used_is_reduced_) {
    used_work_.wait();
    for (std::size_t i = 0; i < used_.size(); ++i) {
      used_[i] = static_cast<std::int32_t>(used_everywhere_.at(static_cast<std::int64_t>(i)));
    }
    used_is_reduced_ = true;
  }
  return used_[index] == 0;
}

void Reducer::shadow_buckets() {
  const Scope scope("ddp.bucket_shadow", bucket_pairing_);
  std::vector<BucketFuture> futures;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    futures.push_back(reduce(i, zeros_like(buckets_[i]), {}));
  }
  for (const BucketFuture& future : futures) {
    future.work.wait();
  }
  for (Parameter* const parameter : parameters_) {
    parameter->missed_gradient = true;
  }
}

void Reducer::shadow_unused_map() {
  if (iteration_ == 0) {
    warn(
        "warning: this rank has never run forward, and DDP still sends its map of used parameters: in torch "
        "that is uninitialized memory, so which parameters count as used is random");
  }
  const Scope scope("ddp.unused_shadow", unused_pairing_);
  all_reduce(used_everywhere_, {.group = options_.group, .async_op = true}, {});
}

}  // namespace rollcall
