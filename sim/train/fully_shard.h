#pragma once

// fully_shard, which is FSDP2: torch/distributed/fsdp/_fully_shard, checked call for call against PyTorch 2.14
// (tests/data/torch_2_14/fsdp). A model is a tree of units, on each of which fully_shard was called; the root has the
// parameters that are in no other unit. Before a unit runs forward, its parameters are gathered in one all_gather, and
// again for its backward if they were freed in between. While a unit computes its backward, the next one's all_gather
// is in flight:
//
//   three units   AG0 AG1 AG2 | AG2 AG1 RS2 AG0 RS1 RS0        (AG: all_gather, RS: reduce_scatter)
//
//   FullyShardedModule model({.units = {{.name = "0", .parameters = ...}, {.name = "1", .parameters = ...}}});
//   model.forward([](std::size_t unit) { launch_kernel(millisecond); });
//   model.backward([&](std::size_t unit, std::size_t parameter) { return gradient; });
//
// Units are counted from the root, which is 0, in the order in which the tree is written: a unit, then those in it.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/c10d/device_mesh.h"
#include "sim/train/fsdp_param_group.h"

namespace rollcall {

// fully_shard's argument: by default True, except for the root, whose parameters the backward needs at once. A size is
// that of the groups inside which the parameters stay sharded between forward and backward.
struct ReshardAfterForward {
  enum class Kind : std::uint8_t { by_default, always, not_at_all, to_size };
  Kind kind = Kind::by_default;
  Rank size = 0;

  static ReshardAfterForward of(bool reshards) { return {reshards ? Kind::always : Kind::not_at_all}; }
  static ReshardAfterForward to(Rank size) { return {Kind::to_size, size}; }
};

struct FsdpUnit {
  std::string name{};  // "layers.0"; the root's is empty
  std::vector<Parameter> parameters{};
  // How many of them the unit uses before the units inside it; the others come after those.
  std::size_t before = 0;
  std::vector<FsdpUnit> units{};
  std::optional<ReshardAfterForward> reshard_after_forward{};  // instead of the model's
};

struct FullyShardOptions {
  ProcessGroup shard_group{};      // none: the world
  ProcessGroup replicate_group{};  // of HSDP: the other dimension of a mesh
  ReshardAfterForward reshard_after_forward{};
  MixedPrecisionPolicy mp_policy{};
  std::string name{};  // in reports
};

struct FsdpForwardOptions {
  bool grad_enabled = true;            // false: as under torch.no_grad()
  bool input_requires_grad = false;    // of the model's own input
  std::vector<std::size_t> skipped{};  // units that do not run
  // Parameters that the outputs do not depend on, as {unit, parameter}.
  std::vector<std::pair<std::size_t, std::size_t>> unused{};
};

class FullyShardedModule {
 public:
  // The gradient of a whole parameter, in its dtype under the policy; a null tensor for None.
  using GradientOf = std::function<Tensor(std::size_t unit, std::size_t parameter)>;

  // Keeps this rank's rows of the parameters. Communicates only to make groups for a reshard_after_forward that is a
  // size. Throws ValueError for a size that does not divide the shard group, and for scalars; ImportError in PyTorch
  // 1.13.
  explicit FullyShardedModule(const FsdpUnit& root, FullyShardOptions options = {}, Site site = Site::here());
  FullyShardedModule(const FullyShardedModule&) = delete;
  FullyShardedModule& operator=(const FullyShardedModule&) = delete;

  // Runs all units in order. `layers` is called where a unit computes; it may issue collectives of its own.
  void forward(const std::function<void(std::size_t unit)>& layers = {},
               const FsdpForwardOptions& options = {}, Site site = Site::here());
  // The backward of the last forward.
  void backward(const GradientOf& gradient, Site site = Site::here());

  // Gathers every parameter separately, as full_tensor() and full state dicts do: every rank has to call it.
  TensorList full_tensors(Site site = Site::here());
  // torch.nn.utils.clip_grad_norm_: the norm of all gradients, which is an all_reduce of one number per gradient.
  double clip_grad_norm(double max_norm, double norm_type = 2, Site site = Site::here());

  // FSDPModule's methods. The first ones are not recursive; the others also apply to the units inside the unit.
  void unshard(std::size_t unit, Site site = Site::here());
  void reshard(std::size_t unit);
  void set_unshard_in_backward(std::size_t unit, bool unshards);
  void set_gradient_divide_factor(std::size_t unit, double factor);
  void set_force_sum_reduction_for_comms(std::size_t unit, bool only_sums);
  void set_modules_to_forward_prefetch(std::size_t unit, std::vector<std::size_t> targets);
  void set_modules_to_backward_prefetch(std::size_t unit, std::vector<std::size_t> targets);
  void set_requires_gradient_sync(bool requires_sync, std::size_t unit = 0);
  void set_requires_all_reduce(bool requires_all_reduce, std::size_t unit = 0);
  void set_reshard_after_forward(bool reshards, std::size_t unit = 0);
  void set_reshard_after_backward(bool reshards, std::size_t unit = 0);
  void set_reduce_scatter_unused_params(bool includes_unused, std::size_t unit = 0);
  void set_is_last_backward(bool is_last) { is_last_backward_ = is_last; }

  // No communication while the guard lives: set_requires_gradient_sync(False), then True.
  class [[nodiscard]] NoSync {
   public:
    explicit NoSync(FullyShardedModule& model) : model_(model) { model_.set_requires_gradient_sync(false); }
    ~NoSync() { model_.set_requires_gradient_sync(true); }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    FullyShardedModule& model_;
  };
  NoSync no_sync() { return NoSync(*this); }

  // torch's hooks, for modules that run in another order than that of forward() and backward().
  void pre_forward(std::size_t unit, Site site);
  void post_forward(std::size_t unit);
  void pre_backward(std::size_t unit, Site site);
  void accumulate(std::size_t unit, std::size_t parameter, const Tensor& gradient);
  void post_backward(std::size_t unit, Site site);
  void finish_backward(
      Site site);  // after the whole backward; does nothing unless a pre_backward came before

  std::size_t unit_count() const { return units_.size(); }
  const std::string& name_of(std::size_t unit) const { return units_[unit].name; }
  // Throws ValueError for a unit that has none.
  std::vector<FsdpParam>& params(std::size_t unit);
  // All parameters, in the order of the model: what an optimizer updates.
  std::vector<Parameter*> parameters();
  // The whole parameter while it is gathered; throws RuntimeError otherwise.
  Tensor unsharded_param(std::size_t unit, std::size_t parameter) const;
  const ProcessGroup& shard_group() const { return mesh_.shard; }

 private:
  struct Unit {
    std::string name;
    std::size_t before = 0;
    std::size_t end = 0;                    // one past the last unit inside it
    std::unique_ptr<FsdpParamGroup> group;  // null without parameters
    bool reshards_by_default = true;
    std::optional<bool> is_root{};
    std::vector<std::size_t> forward_prefetch{};
    std::vector<std::size_t> backward_prefetch{};
  };
  // What autograd records of a forward, in order.
  struct Step {
    enum class Kind : std::uint8_t { input, compute, output };
    Kind kind = Kind::input;
    std::uint32_t unit = 0;
    std::uint32_t first = 0;  // compute: the parameters used
    std::uint32_t end = 0;
  };
  struct Forward;  // one run of forward()

  struct PostForward {
    FsdpParamGroup::ReshardAfterForward reshards = FsdpParamGroup::ReshardAfterForward::yes;
    ProcessGroup group{};
  };
  struct Place {
    std::uint32_t unit = 0;
    std::uint32_t parameter = 0;
  };

  void add_unit(const FsdpUnit& unit, const FullyShardOptions& options, Site site);
  PostForward post_forward_of(std::size_t unit, ReshardAfterForward reshard, Site site) const;
  void lazy_init(std::size_t root);
  const Unit& unit_at(std::size_t unit) const;
  FsdpParamGroup& group_at(std::size_t unit) const;
  template <typename F>
  void each_group(std::size_t unit, F&& f);

  void set_prefetch(std::size_t unit, std::vector<std::size_t> Unit::*list, std::vector<std::size_t> targets);
  void prefetch(const std::vector<std::size_t>& targets, FsdpParamGroup::TrainingState pass, Site site);

  void run_unit(std::size_t unit, Forward& forward);
  void compute(std::size_t unit, std::size_t first, std::size_t end, Forward& forward);
  bool is_used(std::size_t unit, std::size_t parameter) const;

  FsdpMesh mesh_;
  FsdpCommContext context_;
  std::deque<Unit> units_;
  std::vector<Place> order_;  // all parameters, as the model names them
  std::optional<std::size_t> forward_root_;
  bool is_last_backward_ = true;
  bool is_backward_running_ = false;
  std::vector<Step> steps_;  // of the last forward
  std::vector<std::pair<std::size_t, std::size_t>> unused_;
};

}  // namespace rollcall
