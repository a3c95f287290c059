#include "sim/train/ddp.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/c10d/rank_context.h"
#include "sim/c10d/scope.h"
#include "sim/c10d/warnings.h"
#include "sim/torch/torch_traits.h"

namespace rollcall {
namespace {

constexpr std::int64_t broadcast_chunk_bytes = 250 * 1024 * 1024;  // distributed.py, broadcast_bucket_size

std::vector<Parameter*> trainable(Module& module) {
  std::vector<Parameter*> parameters;
  for (Parameter& parameter : module.parameters) {
    if (parameter.requires_grad) {
      parameters.push_back(&parameter);
    }
  }
  if (parameters.empty()) {
    throw RuntimeError(
        "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
        "gradient.");
  }
  return parameters;
}

// The set of `describe`'s texts for the parameters' devices, in order of first appearance.
template <typename Describe>
std::vector<std::string> distinct(const Module& module, Describe&& describe) {
  std::vector<std::string> found;
  for (const Parameter& parameter : module.parameters) {
    std::string text = describe(parameter.value.device());
    if (std::ranges::find(found, text) == found.end()) {
      found.push_back(std::move(text));
    }
  }
  return found;
}

std::string type_name(Device device) {
  const std::string name = to_string(device);
  return "'" + name.substr(0, name.find(':')) + "'";
}

std::string torch_device(Device device) {
  return device.type == DeviceType::cuda ? fmt::format("device(type='cuda', index={})", device.index)
                                         : fmt::format("device(type={})", type_name(device));
}

// Sizes and strides of a tensor; those of all parameters follow each other (reducer.cpp,
// verify_params_across_processes).
std::vector<double> layout_of(const Tensor& tensor) {
  const auto sizes = tensor.shape().sizes();
  std::vector<double> layout(sizes.begin(), sizes.end());
  std::vector<double> strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * static_cast<double>(std::max<std::int64_t>(sizes[i], 1));
  }
  layout.insert(layout.end(), strides.begin(), strides.end());
  return layout;
}

// distributed.py, _BucketCapacityConfig.
std::vector<std::int64_t> bucket_limits(const DdpOptions& options) {
  constexpr std::int64_t usual_cap = 25 * 1024 * 1024;
  if (!options.bucket_cap_list.empty()) {
    return options.bucket_cap_list;
  }
  const std::int64_t cap = options.bucket_cap_bytes.value_or(usual_cap);
  const bool has_small_first = this_rank().torch->first_bucket_is_small || !options.bucket_cap_bytes;
  return {has_small_first ? options.first_bucket_bytes : cap, cap};
}

}  // namespace

DistributedDataParallel::DistributedDataParallel(Module& module, DdpOptions options, Site site)
    : module_(module), options_(std::move(options)), parameters_(trainable(module)) {
  check_devices();
  check_options();
  group_ = options_.group ? options_.group : world();
  device_ = module_.parameters.front().value.device();
  pairing_ = options_.name.empty() ? "" : " of " + options_.name;
  verify_parameter_counts(site);
  verify_parameter_shapes(site);
  sync_module_states(0, options_.forward_sync_buffers || options_.broadcast_buffers.value_or(true), site);
  reducer_ = std::make_unique<Reducer>(
      parameters_, ReducerOptions{.group = group_,
                                  .bucket_limits = bucket_limits(options_),
                                  .limits_first_pass = !options_.bucket_cap_list.empty(),
                                  .find_unused_parameters = options_.find_unused_parameters,
                                  .skip_unused = options_.skip_all_reduce_unused_params,
                                  .static_graph = options_.static_graph,
                                  .gradient_as_bucket_view = options_.gradient_as_bucket_view,
                                  .name_parameters = options_.name_parameters,
                                  .pairing = pairing_});
  if (options_.static_graph && options_.find_unused_parameters) {
    warn(
        "UserWarning: You passed find_unused_parameters=true to DistributedDataParallel, `_set_static_graph` "
        "will detect unused parameters automatically, so you do not need to set find_unused_parameters=true, "
        "just be sure these unused parameters will not change during training loop while calling "
        "`_set_static_graph`.");
  }
  if (module_.has_sync_batch_norm && device_.type == DeviceType::cpu) {
    throw ValueError("SyncBatchNorm layers only work with GPU modules");
  }
}

void DistributedDataParallel::check_options() const {
  const auto refuse = [](const char* argument) {
    throw TypeError(
        fmt::format("DistributedDataParallel.__init__() got an unexpected keyword argument '{}'", argument));
  };
  const bool knows_newest = this_rank().torch->ddp_takes_new_arguments;
  if (!knows_newest && !options_.bucket_cap_list.empty()) {
    refuse("bucket_cap_mb_list");
  }
  if (!knows_newest && options_.forward_sync_buffers) {
    refuse("forward_sync_buffers");
  }
  if (!knows_newest && options_.skip_all_reduce_unused_params) {
    refuse("skip_all_reduce_unused_params");
  }
  if (knows_newest && options_.broadcast_buffers) {
    warn(
        "FutureWarning: `broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead. IMPORTANT: "
        "unlike `broadcast_buffers=False`, `forward_sync_buffers=False` still syncs buffers at init. If you "
        "rely on buffers NOT being synced at init (e.g. rank-local buffers), keep using "
        "`broadcast_buffers=False` until `init_sync_buffers` is available.");
  }
}

bool DistributedDataParallel::syncs_buffers() const {
  return options_.forward_sync_buffers.value_or(options_.broadcast_buffers.value_or(true));
}

void DistributedDataParallel::check_devices() const {
  if (options_.device_ids.size() > 1) {
    throw ValueError("device_ids can only be None or contain a single element.");
  }
  const std::vector<std::string> types = distinct(module_, type_name);
  if (types.size() != 1) {
    throw ValueError(
        fmt::format("DistributedDataParallel's input module must be on the same type of devices, but input "
                    "module parameters locate in {{{}}}.",
                    fmt::join(types, ", ")));
  }
  const std::vector<std::string> devices = distinct(module_, torch_device);
  if (!options_.device_ids.empty() && (types.front() == "'cpu'" || devices.size() > 1)) {
    throw ValueError(
        fmt::format("DistributedDataParallel device_ids and output_device arguments only work with "
                    "single-device/multiple-device GPU modules or CPU modules, but got device_ids [{}], "
                    "output_device None, and module parameters {{{}}}.",
                    options_.device_ids.front(), fmt::join(devices, ", ")));
  }
}

void DistributedDataParallel::verify_parameter_counts(Site site) const {
  const Scope scope("ddp.ctor_verify", pairing("ddp.ctor_verify"));
  const auto mine = static_cast<std::int64_t>(parameters_.size());
  const Tensor counts = Tensor::zeros({group_.size()}, Dtype::int64, device_);
  all_gather_flat(counts, Tensor::integer(mine, Dtype::int64, device_), {.group = group_}, site);
  if (counts.is_meta() || counts.settle().storage()->form == Storage::Form::uniform) {
    return;  // no two ranks differ, and so none differs from this one
  }
  for (Rank rank = 0; rank < group_.size(); ++rank) {
    const auto theirs = static_cast<std::int64_t>(counts.at(rank));
    if (theirs != mine) {
      throw RuntimeError(
          fmt::format("DDP expects same model across all ranks, but Rank {} has {} params, while rank {} has "
                      "inconsistent {} params.",
                      group_.rank(), mine, rank, theirs));
    }
  }
}

void DistributedDataParallel::verify_parameter_shapes(Site site) const {
  const Scope scope("ddp.ctor_verify", pairing("ddp.ctor_verify"));
  std::vector<double> layout;
  for (const Parameter* parameter : parameters_) {
    const std::vector<double> part = layout_of(parameter->value);
    layout.insert(layout.end(), part.begin(), part.end());
  }
  const Tensor control = Tensor::of(layout, Dtype::int64, device_);
  broadcast(control, group_.members().ranks.front(), {.group = group_}, site);
  std::size_t at = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Shape& shape = parameters_[i]->value.shape();
    for (const char* const what : {"sizes", "strides"}) {
      for (std::size_t d = 0; d < shape.sizes().size(); ++d, ++at) {
        if (control.at(static_cast<std::int64_t>(at)) != layout[at]) {
          throw RuntimeError(fmt::format(
              "[{}]: params[{}] in this process with sizes {} appears not to match {} of the same "
              "param in process 0.",
              group_.rank(), i, to_string(shape), what));
        }
      }
    }
  }
}

void DistributedDataParallel::sync_module_states(Rank root, bool with_buffers, Site site) const {
  const Scope scope("ddp.module_states", pairing("ddp.module_states"));
  const bool sends_all = with_buffers || this_rank().torch->sends_kept_buffers;
  broadcast_coalesced(sends_all ? module_.states() : module_.parameter_values(), root, broadcast_chunk_bytes,
                      group_, site);
}

bool DistributedDataParallel::will_sync_buffers() const {
  return require_forward_param_sync_ && syncs_buffers() && !module_.buffers.empty();
}

void DistributedDataParallel::sync_buffers(Rank root, Site site) const {
  const Scope scope("ddp.buffers", pairing("ddp.buffers"));
  broadcast_coalesced(module_.buffer_values(), root, broadcast_chunk_bytes, group_, site);
}

// The highest rank that is a candidate.
Rank DistributedDataParallel::find_common_rank(bool is_candidate, Site site) const {
  const Scope scope("ddp.common_rank", pairing("ddp.common_rank"));
  const Tensor candidate = Tensor::integer(is_candidate ? group_.rank() : -1, Dtype::int64, device_);
  all_reduce(candidate, {.op = ReduceOp::max, .group = group_}, site);
  const auto chosen = static_cast<Rank>(candidate.item_integer());
  if (chosen == -1) {
    throw ValueError(
        "BUG! Expected rank_cond to be true for at least one process. This indicates a bug in PyTorch, "
        "please report an issue.");
  }
  return chosen;
}

// Tells the ranks that have joined whether a reducing backward follows.
Work DistributedDataParallel::announce_backward_sync(bool is_joined_rank, Tensor& ranks_that_sync,
                                                     Site site) const {
  const Scope scope("ddp.backward_sync_flag", pairing("ddp.backward_sync_flag"));
  const bool will_sync = !is_joined_rank && require_backward_grad_sync_;
  ranks_that_sync = Tensor::full({1}, will_sync ? 1 : 0, Dtype::float32, device_);
  return all_reduce(ranks_that_sync, {.group = group_, .async_op = true}, site);
}

void DistributedDataParallel::begin_forward(ForwardOptions options, Site site) {
  if (options.grad_enabled && require_backward_grad_sync_) {
    reducer_->prepare_for_forward();
  }
  Tensor active_ranks;
  const Work notified = Join::notify_join_context(*this, active_ranks, site);
  if (active_ranks) {
    reducer_->set_forward_pass_work(notified, active_ranks, divide_by_initial_world_size_);
  }
  if (options.grad_enabled) {
    reducer_->rebuild_buckets(site);
  }
  const bool is_joining = join_config && join_config->enable;
  if (will_sync_buffers()) {
    sync_buffers(is_joining ? find_common_rank(true, site) : 0, site);
  }
  if (is_joining) {
    Tensor ranks_that_sync;
    announce_backward_sync(false, ranks_that_sync, site);
  }
}

void DistributedDataParallel::end_forward(ForwardOptions options, const ForwardOutputs& outputs) {
  require_forward_param_sync_ = options.grad_enabled && require_backward_grad_sync_;
  if (require_forward_param_sync_) {
    reducer_->prepare_for_backward(outputs.unused);
  }
}

void DistributedDataParallel::accumulate(Gradient gradient, Site site) {
  if (gradient.computed_by.duration > 0) {
    launch_kernel(gradient.computed_by);
  }
  accumulate_gradient(*parameters_[gradient.parameter], std::move(gradient.value));
  reducer_->gradient_ready(gradient.parameter, site);
}

void DistributedDataParallel::finish_backward(Site site) { reducer_->finish_backward(site); }

void DistributedDataParallel::backward(std::vector<Gradient> gradients, Site site) {
  for (Gradient& gradient : gradients) {
    accumulate(std::move(gradient), site);
  }
  finish_backward(site);
}

// distributed.py, _DDPJoinHook.
class DistributedDataParallel::Hook final : public JoinHook {
 public:
  explicit Hook(DistributedDataParallel& model) : model_(model) {}

  void main_hook() override { model_.shadow_iteration(); }

  void post_hook(bool is_last_joiner) override {
    model_.authoritative_rank_ = model_.find_common_rank(is_last_joiner, {});
    model_.sync_module_states(model_.authoritative_rank_, model_.syncs_buffers(), {});
  }

 private:
  DistributedDataParallel& model_;  // outlives its hook, as Join requires
};

void DistributedDataParallel::shadow_iteration() {
  reducer_->rebuild_buckets({});
  if (will_sync_buffers()) {
    sync_buffers(find_common_rank(false, {}), {});
  }
  Tensor ranks_that_sync;
  announce_backward_sync(true, ranks_that_sync, {}).wait();
  require_forward_param_sync_ = ranks_that_sync.item() != 0;
  if (!require_forward_param_sync_) {
    return;
  }
  reducer_->shadow_buckets();
  if (options_.find_unused_parameters) {
    reducer_->shadow_unused_map();
  }
  reducer_->push_all_rebuilt_parameters();
}

std::unique_ptr<JoinHook> DistributedDataParallel::join_hook(const Kwargs& kwargs) {
  divide_by_initial_world_size_ = get_or(kwargs, "divide_by_initial_world_size", true);
  return std::make_unique<Hook>(*this);
}

}  // namespace rollcall
