#include "sim/engine/backends.h"

#include "sim/base/expects.h"
#include "sim/gloo/gloo_rules.h"
#include "sim/nccl/nccl_rules.h"

namespace rollcall::sim {

std::unique_ptr<BackendRules> make_backend_rules(std::string_view name) {
  if (name == "gloo") {
    return make_gloo_rules();
  }
  expects(name == "nccl", "the backend's name has been checked");
  return make_nccl_rules();
}

const Admission& Admission::to(std::string_view backend) {
  static const Admission gloo(*make_gloo_rules());
  static const Admission nccl(*make_nccl_rules());
  return backend == "gloo" ? gloo : nccl;
}

Admission::Admission(const BackendRules& rules) : one_gpu_per_rank_(rules.needs_cuda()) {
  Op op;
  for (const DeviceType type : {DeviceType::cpu, DeviceType::cuda, DeviceType::meta}) {
    op.device.type = type;
    for (std::size_t kind = 0; kind < op_kind_count; ++kind) {
      op.kind = static_cast<OpKind>(kind);
      for (std::size_t dtype = 0; dtype < dtype_count; ++dtype) {
        op.dtype = static_cast<Dtype>(dtype);
        for (std::size_t reduce = 0; reduce < reduce_op_count; ++reduce) {
          op.reduce = static_cast<ReduceOp>(reduce);
          admitted_[static_cast<std::size_t>(type)][kind][dtype][reduce] = !rules.refuses(op);
        }
      }
    }
  }
}

}  // namespace rollcall::sim
