#pragma once

// The calls that torch's process group for Gloo refuses before it calls Gloo: operations it lacks, and dtypes and
// reductions it has no function for. Facts: torch/csrc/distributed/c10d/ProcessGroupGloo.cpp and Backend.hpp of the
// releases of TorchTraits. The simulated and the real backend use the same checks.

#include <string>

#include "sim/base/error.h"
#include "sim/c10d/op.h"
#include "sim/torch/torch_traits.h"

namespace rollcall {

// True when torch does nothing with the call, on any backend: its tensors have no data.
inline bool is_ignored(const Op& op, const TorchTraits& torch) {
  return op.device.type == DeviceType::meta && torch.ignores_meta_tensors && has_tensor(op.kind);
}

// True when the call itself raises.
bool gloo_refuses(const Op& op, const TorchTraits& torch);

// True when the call is accepted and takes its number, but the thread that runs it finds that it cannot: its rank
// raises when it waits, and the others wait for it.
bool gloo_raises_late(const Op& op, const TorchTraits& torch);

// The error of either. `op` must be one of them.
Error gloo_refusal(const Op& op, const TorchTraits& torch);

// The error that Gloo itself raises when it begins to run a call (gloo/alltoall.cc, gloo/alltoallv.cc), before anything
// is sent; here, too, the rank raises when it waits. Empty if there is none.
std::string gloo_enforce_text(const Op& op, Rank group_size);

}  // namespace rollcall
