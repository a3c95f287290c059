#include "sim/engine/backends.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "sim/base/expects.h"
#include "sim/gloo/gloo_rules.h"
#include "sim/nccl/nccl_rules.h"
#include "sim/torch/torch_traits.h"

namespace rollcall::sim {

namespace {

struct Simulated {
  std::string_view name;
  std::unique_ptr<BackendRules> (*make_rules)(const TorchTraits& torch);
};
constexpr std::array<Simulated, 2> simulated{{{"gloo", make_gloo_rules}, {"nccl", make_nccl_rules}}};

}  // namespace

std::unique_ptr<BackendRules> make_backend_rules(std::string_view name, const TorchTraits& torch) {
  const auto entry = std::ranges::find(simulated, name, &Simulated::name);
  expects(entry != simulated.end(), "the backend's name has been checked");
  return entry->make_rules(torch);
}

const Admission& Admission::to(std::string_view backend, TorchRelease torch) {
  struct Made {
    std::once_flag once;
    std::optional<Admission> admission;
  };
  static std::map<std::pair<std::string_view, TorchRelease>, Made> all = [] {
    std::map<std::pair<std::string_view, TorchRelease>, Made> none;
    for (const Simulated& entry : simulated) {
      for (const TorchTraits& release : known_torch_releases()) {
        none.try_emplace({entry.name, release.release});
      }
    }
    return none;
  }();
  Made& made = all.at({backend, torch});
  std::call_once(made.once, [&] { made.admission.emplace(*make_backend_rules(backend, traits_of(torch))); });
  return *made.admission;
}

Admission::Admission(const BackendRules& rules)
    : one_gpu_per_rank_(rules.traits().device == DeviceType::cuda) {
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
