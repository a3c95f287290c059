#pragma once

// The backends that the simulator knows, by name.

#include <cstddef>
#include <memory>
#include <string_view>

#include "sim/match/backend_rules.h"

namespace rollcall::sim {

// The name must be that of a known backend.
std::unique_ptr<BackendRules> make_backend_rules(std::string_view name,
                                                 const TorchTraits& torch = traits_of(newest_torch));

// BackendRules::refuses as a table, because it is asked for every call.
class Admission {
 public:
  // The table of this backend in this release. Built at its first use, which takes as long as a small run.
  static const Admission& to(std::string_view backend, TorchRelease torch);
  explicit Admission(const BackendRules& rules);

  bool admits(const Op& op) const {
    return admitted_[static_cast<std::size_t>(op.device.type)][static_cast<std::size_t>(op.kind)]
                    [static_cast<std::size_t>(op.dtype)][static_cast<std::size_t>(op.reduce)];
  }
  bool one_gpu_per_rank() const { return one_gpu_per_rank_; }

 private:
  bool admitted_[3][op_kind_count][dtype_count][reduce_op_count] =
      {};  // by device type, kind, dtype, reduce op
  bool one_gpu_per_rank_;
};

}  // namespace rollcall::sim
