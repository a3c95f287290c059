#include "sim/dtensor/ring_attention.h"

#include <utility>
#include <vector>

#include "sim/base/error.h"
#include "sim/c10d/rank_context.h"
#include "sim/c10d/scope.h"

namespace rollcall {

// _AllToAllRotater and _AllGatherRotater.
class RingAttention::Rotater {
 public:
  Rotater(const ProcessGroup& group, RotateMethod method) : group_(group), method_(method) {}

  void exchange(const Tensor& buffer, Site site) {
    if (method_ == RotateMethod::allgather) {
      if (!has_gathered_) {
        incoming_ = functional::all_gather_single(buffer, 0, group_, site);
        has_gathered_ = true;
      }
      return;
    }
    std::vector<Rank> next;
    for (Rank member = 0; member < group_.size(); ++member) {
      next.push_back((member + 1) % group_.size());
    }
    incoming_ = functional::permute_tensor(buffer, next, group_, site);
  }

  void wait() const { incoming_.wait(); }

 private:
  ProcessGroup group_;
  RotateMethod method_;
  functional::AsyncTensor incoming_;
  bool has_gathered_ = false;
};

RingAttention::RingAttention(RingOptions options) : options_(std::move(options)) {
  if (options_.is_load_balanced && !options_.is_causal) {
    throw RuntimeError("Load balancing requires `is_causal=True`.");
  }
}

// _is_causal_behavior: parts of the sequence after the rank's own are masked.
bool RingAttention::skips(Rank step) const {
  return options_.is_causal && !options_.is_load_balanced && step > options_.group.rank();
}

// _templated_ring_attention.
void RingAttention::forward(const Attend& attend, Site site) {
  const Scope scope("ring_attention.forward");
  pass_around(attend, nullptr, site);
}

// _templated_ring_attention_backward: gradients always go from neighbor to neighbor.
void RingAttention::backward(const Attend& attend, Site site) {
  const Scope scope("ring_attention.backward");
  Rotater gradients(options_.group, RotateMethod::alltoall);
  pass_around(attend, &gradients, site);
  gradients.wait();
}

void RingAttention::pass_around(const Attend& attend, Rotater* gradients, Site site) const {
  const Rank size = options_.group.size();
  const auto both = [&](Dtype dtype) {  // a rank's keys and its values
    return Tensor::zeros({2 * options_.key.numel()}, dtype, this_rank().device);
  };
  const Tensor key_value = both(options_.dtype);
  const Tensor gradient = both(options_.convert_to_f32 ? Dtype::float32 : options_.dtype);
  Rotater rotater(options_.group, options_.rotate_method);
  for (Rank step = 0; step < size; ++step) {
    if (step > 0) {
      rotater.wait();
    }
    if (step < size - 1) {
      rotater.exchange(key_value, site);
    }
    if (attend && !skips(step)) {
      attend(step);
    }
    if (gradients != nullptr) {
      gradients->wait();
      gradients->exchange(gradient, site);
    }
  }
}

}  // namespace rollcall
