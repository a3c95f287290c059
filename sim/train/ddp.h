#pragma once

// DistributedDataParallel: torch/nn/parallel/distributed.py, call for call. The rank program says when a forward
// happens, which gradients the backward yields and what the GPU computes for them; DDP issues the collectives that go
// with them, as soon as a bucket's gradients are ready, and averages the gradients.
//
//   DistributedDataParallel model(net);
//   Join({model}).run([&] {
//     for (each input) {
//       model.forward([&] { launch_kernel(5 * millisecond); });
//       model.backward({{1, bias_gradient}, {0, weight_gradient, {.duration = 10 * millisecond}}});
//       optimizer.step();
//     }
//   });

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/c10d/stream.h"
#include "sim/train/join.h"
#include "sim/train/reducer.h"

namespace rollcall {

struct DdpOptions {
  ProcessGroup group{};  // none: the world
  std::vector<std::int16_t> device_ids{};
  std::optional<bool> broadcast_buffers{};  // none: true. 2.14 calls it deprecated
  std::optional<bool>
      forward_sync_buffers{};  // in 2.14: the same, except that the constructor always sends them
  // bucket_cap_mb. None: 25 MiB, and a smaller first bucket. In 2.x a cap that is given applies to the first, too.
  std::optional<std::int64_t> bucket_cap_bytes{};
  std::int64_t first_bucket_bytes = 1024 * 1024;  // dist._DEFAULT_FIRST_BUCKET_BYTES
  std::vector<std::int64_t>
      bucket_cap_list{};  // in 2.14, bucket_cap_mb_list: of the first, second, ... bucket
  bool find_unused_parameters = false;
  // In 2.14: a bucket without a used parameter is not reduced. Ranks that use different parameters diverge there, and
  // so does a rank that has joined, which shadows every bucket.
  bool skip_all_reduce_unused_params = false;
  // Saves memory in torch: gradients share the buckets' storage. Its only effect here is that a gradient is divided as
  // soon as it is ready, which shows when its bucket is never reduced.
  bool gradient_as_bucket_view = false;
  bool static_graph = false;
  bool name_parameters = false;  // in errors, as with TORCH_DISTRIBUTED_DEBUG=INFO or DETAIL
  std::string name{};            // in reports; models of different names never belong together
};

struct ForwardOptions {
  bool grad_enabled = true;  // false: as under torch.no_grad()
};

// What the module's own forward tells DDP about its outputs.
struct ForwardOutputs {
  std::vector<std::uint32_t> unused{};  // parameters that they do not depend on
};

// A gradient of the parameter with this index (among those that require one), its value on this rank, and the kernel
// that computes it.
struct Gradient {
  std::uint32_t parameter = 0;
  Tensor value;
  Kernel computed_by{};  // without a duration: none
};

class DistributedDataParallel : public Joinable {
 public:
  // module: borrowed. Compares the parameters' shapes with rank 0's, then takes rank 0's values. Blocks. Throws
  // RuntimeError when counts or shapes differ or no parameter requires a gradient; ValueError for parameters on several
  // types of device, and for device_ids or SyncBatchNorm in a module on the CPU.
  explicit DistributedDataParallel(Module& module, DdpOptions options = {}, Site site = Site::here());
  DistributedDataParallel(const DistributedDataParallel&) = delete;
  DistributedDataParallel& operator=(const DistributedDataParallel&) = delete;

  // DDP's part before the module's forward, and after it. Throws what Join and the reducer throw.
  void begin_forward(ForwardOptions options, Site site);
  void end_forward(ForwardOptions options, const ForwardOutputs& outputs);
  // The whole forward. `module_forward` may issue collectives of its own, and may return ForwardOutputs.
  template <typename ModuleForward>
  void forward(ModuleForward&& module_forward, ForwardOptions options = {}, Site site = Site::here()) {
    begin_forward(options, site);
    if constexpr (std::is_void_v<std::invoke_result_t<ModuleForward>>) {
      std::forward<ModuleForward>(module_forward)();
      end_forward(options, {});
    } else {
      end_forward(options, std::forward<ModuleForward>(module_forward)());
    }
  }

  // The backward pass: gradients in the order in which autograd computes them, by default that of the
  // parameters reversed. Parameters without one were not used. Blocks until the buckets are reduced.
  void backward(std::vector<Gradient> gradients, Site site = Site::here());
  // The same in two steps, for a backward through several models: gradients first, each model's end last.
  void accumulate(Gradient gradient, Site site = Site::here());
  void finish_backward(Site site = Site::here());

  // While the guard lives, backward only accumulates gradients.
  class [[nodiscard]] NoSync {
   public:
    explicit NoSync(DistributedDataParallel& model)
        : model_(model), outer_(std::exchange(model.require_backward_grad_sync_, false)) {}
    ~NoSync() { model_.require_backward_grad_sync_ = outer_; }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    DistributedDataParallel& model_;
    bool outer_;
  };
  NoSync no_sync() { return NoSync(*this); }

  void register_comm_hook(CommHook hook) { reducer_->register_comm_hook(std::move(hook)); }

  // model.join(): Join with this model alone.
  template <typename Body>
  void join(Body&& body, JoinOptions options = {}) {
    Join({*this}, std::move(options)).run(std::forward<Body>(body));
  }

  // Keyword argument: divide_by_initial_world_size (true). If false, gradients are divided by the number of
  // ranks that still have inputs; that lasts beyond the context.
  std::unique_ptr<JoinHook> join_hook(const Kwargs& kwargs) override;
  Device join_device() const override { return device_; }
  ProcessGroup join_process_group() const override { return group_; }
  std::string name() const override { return options_.name.empty() ? "model" : options_.name; }

  Module& module() { return module_; }
  const DdpOptions& options() const { return options_; }
  // The parameters that require gradients, in the order of their indices.
  const std::vector<Parameter*>& parameters() const { return parameters_; }
  const Reducer& reducer() const { return *reducer_; }
  // The rank of the group whose model all ranks took at the end of the last Join; -1 before.
  Rank authoritative_rank() const { return authoritative_rank_; }

 private:
  class Hook;

  void check_devices() const;
  void check_options() const;
  bool syncs_buffers() const;  // before every forward
  void verify_parameter_counts(Site site) const;
  void verify_parameter_shapes(Site site) const;
  void sync_module_states(Rank root, bool with_buffers, Site site) const;
  bool will_sync_buffers() const;
  void sync_buffers(Rank root, Site site) const;
  Rank find_common_rank(bool is_candidate, Site site) const;
  Work announce_backward_sync(bool is_joined_rank, Tensor& ranks_that_sync, Site site) const;
  void shadow_iteration();
  std::string pairing(const char* call) const { return call + pairing_; }

  Module& module_;
  DdpOptions options_;
  ProcessGroup group_;
  Device device_;
  std::string pairing_;
  std::vector<Parameter*> parameters_;
  std::unique_ptr<Reducer> reducer_;
  bool require_backward_grad_sync_ = true;
  bool require_forward_param_sync_ = true;
  bool divide_by_initial_world_size_ = true;
  Rank authoritative_rank_ = -1;
};

}  // namespace rollcall
