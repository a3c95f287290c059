#include "sim/train/fsdp_param_group.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/rank_context.h"
#include "sim/c10d/scope.h"
#include "sim/torch/torch_traits.h"

namespace rollcall {
namespace {

// torch's record_function labels have the unit's name in brackets; the root has none.
std::string labeled(const char* what, const std::string& unit) {
  return unit.empty() ? what : fmt::format("{} ({})", what, unit);
}

std::string paired(const char* what, const std::string& unit, const std::string& owner) {
  return fmt::format("{} {} of {}", what, unit, owner);
}

void wait_on(Stream stream, const Event& event) {
  const StreamScope scope(stream);
  event.wait();
}

void divide_if_needed(const Tensor& tensor, double divisor) {
  if (divisor != 1) {
    divide(tensor, divisor);
  }
}

Event record_on(Stream stream) {
  const StreamScope scope(stream);
  Event event;
  event.record();
  return event;
}

}  // namespace

void FsdpCommContext::lazy_init() {
  if (!is_initialized) {
    is_initialized = true;
    for (Stream* const stream : {&copy_in, &all_gather, &reduce_scatter, &all_reduce}) {
      *stream = new_stream();
    }
  }
}

void FsdpCommContext::wait_for_all_gathers(const Event& event) const {
  if (is_initialized) {
    wait_on(copy_in, event);
    wait_on(all_gather, event);
  }
}

void FsdpCommContext::release_gathered() {
  if (gathered_before) {
    wait_for_all_gathers(*std::exchange(gathered_before, std::nullopt));
  }
}

FsdpParamGroup::FsdpParamGroup(const std::string& name, const std::string& owner,
                               const std::vector<Parameter>& parameters, FsdpMesh mesh,
                               MixedPrecisionPolicy policy, FsdpCommContext& context)
    : mesh_(std::move(mesh)),
      policy_(policy),
      context_(context),
      gather_label_(labeled("FSDP::all_gather", name)),
      reduce_label_(labeled("FSDP::post_backward_reduce", name)),
      gather_pairing_(paired("fsdp.all_gather", name, owner)),
      reduce_pairing_(paired("fsdp.reduce", name, owner)) {
  params_.reserve(parameters.size());
  for (const Parameter& parameter : parameters) {
    require_real(parameter.value);
    params_.emplace_back(parameter, mesh_.shard.rank(), mesh_.shard.size());
  }
}

// _fsdp_param_group.py, _init_mp_dtypes.
void FsdpParamGroup::lazy_init() {
  if (std::exchange(was_reset_, true)) {
    return;
  }
  std::set<std::string> dtypes;
  for (FsdpParam& param : params_) {
    param.init_dtypes(policy_);
    if (param.requires_grad()) {
      dtypes.insert(fmt::format("torch.{}", to_string(param.dtype())));
    }
  }
  if (dtypes.size() > 1) {
    throw AssertionError(
        fmt::format("FSDP expects uniform original parameter dtype but got {{{}}}", fmt::join(dtypes, ", ")));
  }
}

const ProcessGroup& FsdpParamGroup::all_gather_group() const {
  return state_ == ShardedState::sharded_post_forward ? post_forward_group : mesh_.shard;
}

bool FsdpParamGroup::has_streams_of_its_own() const {
  return training_state == TrainingState::forward || training_state == TrainingState::pre_backward;
}

void FsdpParamGroup::unshard(Site site) {
  if (gathered_ || is_unsharded() ||
      (!unshard_in_backward && training_state == TrainingState::pre_backward)) {
    return;
  }
  if (resharded_) {
    context_.wait_for_all_gathers(*std::exchange(resharded_, std::nullopt));
  }
  const ProcessGroup group = all_gather_group();
  gathered_from_ = group.size();
  fill_all_gather_input();
  if (gathered_from_ == 1 && this_rank().torch->fully_shard_skips_alone) {
    all_gather_output_ = all_gather_input_;
    gathered_.emplace().record();
    return;
  }
  const Stream copy_in = has_streams_of_its_own() ? context_.copy_in : current_stream();
  const StreamScope stream(has_streams_of_its_own() ? context_.all_gather : copy_in);
  record_on(copy_in).wait();
  const std::int64_t numel = all_gather_input_.numel() * gathered_from_;
  reuse(all_gather_output_, numel, all_gather_input_.dtype(), all_gather_input_.device(),
        all_gather_input_.is_meta());
  const Scope scope(gather_label_, gather_pairing_);
  all_gather_into_tensor(all_gather_output_, all_gather_input_, {.group = group}, site);
  const TorchError& refused = this_rank().torch->fully_shard_on_cpu;
  if (*refused.type != '\0' && all_gather_input_.device().type == DeviceType::cpu) {
    throw Error(refused.type, std::string(refused.text));
  }
  gathered_.emplace().record();
}

// _fsdp_collectives.py, foreach_all_gather: the shards of all parameters end to end, as bytes when their types differ.
void FsdpParamGroup::fill_all_gather_input() {
  const Device device = params_.front().sharded.value.device();
  const Rank parts = state_ == ShardedState::sharded_post_forward ? shard_size() / gathered_from_ : 1;
  const Dtype dtype = params_.front().compute_dtype();
  bool is_one_type = true;
  bool has_values = true;
  std::int64_t numel = 0;
  std::int64_t bytes = 0;
  for (const FsdpParam& param : params_) {
    is_one_type = is_one_type && param.compute_dtype() == dtype;
    has_values = has_values && !param.sharded.value.is_meta();
    numel += param.padded_numel() * parts;
    bytes += param.padded_numel() * parts * static_cast<std::int64_t>(size_of(param.compute_dtype()));
  }
  if (!is_one_type || !has_values) {  // bytes of several types have no values here
    all_gather_input_ =
        Tensor::meta({is_one_type ? numel : bytes}, is_one_type ? dtype : Dtype::uint8, device);
    return;
  }
  if (state_ == ShardedState::sharded_post_forward) {
    fill_from_gathered(numel, dtype, device);
    return;
  }
  const Tensor& input = reuse(all_gather_input_, numel, dtype, device);
  sources_.clear();
  for (const FsdpParam& param : params_) {
    sources_.push_back(param.sharded.value);
  }
  if (!fill_if_alike(input, sources_)) {
    pieces_.clear();
    std::int64_t to = 0;
    for (std::size_t i = 0; i < params_.size(); ++i) {
      pieces_.push_back({&sources_[i], 0, sources_[i].numel(), to});
      to += params_[i].padded_numel();
    }
    fill_flat(input, pieces_);
  }
  sources_.clear();
}

// _fsdp_param.py, to_sharded_post_forward: the rank kept one part of what was gathered for the forward. It is sliced
// only now, because the host would have had to wait for it then.
void FsdpParamGroup::fill_from_gathered(std::int64_t numel, Dtype dtype, Device device) {
  const Tensor gathered = std::exchange(all_gather_output_, Tensor());
  const Tensor& input = reuse(all_gather_input_, numel, dtype, device);
  if (fill_if_alike(input, {&gathered, 1})) {
    return;
  }
  const Rank parts = shard_size() / gathered_from_;
  const Rank first = post_forward_group.rank() * parts;
  const std::int64_t row = gathered.numel() / shard_size();
  pieces_.clear();
  std::int64_t to = 0;
  std::int64_t at = 0;
  for (const FsdpParam& param : params_) {
    for (Rank part = first; part < first + parts; ++part, to += param.padded_numel()) {
      pieces_.push_back({&gathered, part * row + at, param.padded_numel(), to});
    }
    at += param.padded_numel();
  }
  fill_flat(input, pieces_);
}

void FsdpParamGroup::wait_for_unshard() {
  if (!gathered_) {
    return;
  }
  const bool is_forward = training_state == TrainingState::forward;
  if (is_forward) {
    context_.release_gathered();
  }
  std::exchange(gathered_, std::nullopt)->wait();
  state_ = ShardedState::unsharded;
  for (FsdpParam& param : params_) {
    param.was_unsharded = true;
  }
  Event copied_out;
  copied_out.record();
  if (is_forward && gathered_from_ > 1) {
    context_.gathered_before = copied_out;
  } else {
    context_.wait_for_all_gathers(copied_out);
  }
}

void FsdpParamGroup::reshard() {
  if (training_state == TrainingState::forward) {
    if (reshard_after_forward == ReshardAfterForward::no) {
      return;
    }
    if (reshard_after_forward == ReshardAfterForward::to_smaller_group) {
      state_ = ShardedState::sharded_post_forward;
      resharded_.emplace().record();
      return;
    }
  }
  to_sharded();
}

void FsdpParamGroup::to_sharded() {
  state_ = ShardedState::sharded;
  if (all_gather_output_ && all_gather_output_.storage()->form == Storage::Form::dense) {
    all_gather_output_ = Tensor();
  }
}

void FsdpParamGroup::pre_forward(Site site) {
  training_state = TrainingState::forward;
  unshard(site);
  wait_for_unshard();
}

void FsdpParamGroup::post_forward() {
  reshard();
  forwards_.push_back(context_.post_forward_order.size());
  context_.post_forward_order.push_back(this);
  training_state = TrainingState::idle;
}

void FsdpParamGroup::pre_backward(bool default_prefetch, Site site) {
  if (training_state == TrainingState::pre_backward) {
    return;
  }
  training_state = TrainingState::pre_backward;
  unshard(site);
  wait_for_unshard();
  if (default_prefetch) {
    backward_prefetch(site);
  }
}

void FsdpParamGroup::backward_prefetch(Site site) {
  if (forwards_.empty()) {
    return;
  }
  const std::size_t place = forwards_.back();
  forwards_.pop_back();
  if (place > 0) {
    context_.post_forward_order[place - 1]->prefetch(TrainingState::pre_backward, site);
  }
}

void FsdpParamGroup::prefetch(TrainingState pass, Site site) {
  const TrainingState before = std::exchange(training_state, pass);
  unshard(site);
  training_state = before;
}

void FsdpParamGroup::post_backward(Site site) {
  training_state = TrainingState::post_backward;
  for (FsdpParam& param : params_) {
    param.merge_accumulated();
  }
  if (!reduce_grads) {
    if (reshard_after_backward) {
      reshard();
    }
    for (FsdpParam& param : params_) {
      param.keep_accumulated();
    }
    return;
  }
  collect_gradients();
  if (reshard_after_backward) {
    reshard();
  }
  wait_once(context_.reduced_before);
  if (!with_grad_.empty()) {
    reduce(site);
  }
}

void FsdpParamGroup::collect_gradients() {
  settle_gradients();  // of an earlier use in the same backward
  for (std::uint32_t i = 0; i < params_.size(); ++i) {
    FsdpParam& param = params_[i];
    if (!param.was_unsharded) {
      continue;
    }
    Tensor gradient = param.take_gradient();
    if (!gradient && reduce_scatter_unused_params && param.requires_grad()) {
      gradient = param.zero_gradient();
    }
    if (gradient) {
      with_grad_.push_back(i);
      sources_.push_back(std::move(gradient));
    }
  }
}

// _fsdp_collectives.py, _get_gradient_divide_factors.
FsdpParamGroup::DivideFactors FsdpParamGroup::divide_factors(Dtype dtype) const {
  const Rank ranks = shard_size() * (mesh_.replicate ? mesh_.replicate.size() : 1);
  const bool overflows = dtype != Dtype::float32 && dtype != Dtype::bfloat16;
  DivideFactors factors;
  if (!overflows && !force_sum_reduction_for_comms) {
    if (!gradient_divide_factor) {
      factors.reduce_scatter = ranks == 1 ? ReduceOp::sum : ReduceOp::avg;
      factors.all_reduce = factors.reduce_scatter;
      return factors;
    }
    if (*gradient_divide_factor == shard_size()) {
      factors.reduce_scatter = ReduceOp::avg;
    } else {
      factors.reduce_scatter = ReduceOp::premul_sum;
      factors.premul = 1 / *gradient_divide_factor;
    }
    return factors;
  }
  const double factor = gradient_divide_factor.value_or(ranks);
  if (overflows) {  // about half before the reduction and half after it
    while (std::fmod(factor, factors.before) == 0 && factor / factors.before > factors.before) {
      factors.before *= 2;
    }
  }
  factors.after = factor / factors.before;
  return factors;
}

void FsdpParamGroup::reduce(Site site) {
  const auto trainable = std::ranges::find_if(params_, &FsdpParam::requires_grad);
  const Dtype dtype = trainable->reduce_dtype().value_or(sources_.front().dtype());
  const DivideFactors factors = divide_factors(dtype);
  wait_once(reduced_event_);
  fill_reduce_scatter_input(dtype);
  divide_if_needed(reduce_scatter_input_, factors.before);
  Event ready;
  ready.record();
  {
    const StreamScope stream(context_.reduce_scatter);
    ready.wait();
    reduce_scatter(factors, site);
    context_.reduced_before.emplace().record();
    context_.last_reduced = context_.reduced_before;
  }
  reduced_event_ = context_.last_reduced;
  if (mesh_.replicate && !all_reduce_grads) {
    if (partial_reduce_output_) {
      partial_reduce_output_.add_(reduce_output_);
    } else {
      partial_reduce_output_ = std::exchange(reduce_output_, Tensor());
    }
    with_grad_.clear();
    return;
  }
  if (mesh_.replicate) {
    all_reduce(factors, site);
  }
  std::swap(reduced_, with_grad_);
  divide_after_ = factors.after;
}

// foreach_reduce_scatter_copy_in: of every gradient the first rank's rows, then the second's, and so on.
void FsdpParamGroup::fill_reduce_scatter_input(Dtype dtype) {
  std::int64_t part = 0;
  for (const std::uint32_t i : with_grad_) {
    part += params_[i].padded_numel();
  }
  const Device device = sources_.front().device();
  const bool is_meta = std::ranges::any_of(sources_, &Tensor::is_meta);
  const Tensor& input = reuse(reduce_scatter_input_, part * shard_size(), dtype, device, is_meta);
  reuse(reduce_output_, part, dtype, device, is_meta);
  if (!is_meta && !fill_if_alike(input, sources_)) {
    pieces_.clear();
    std::int64_t at = 0;
    for (std::size_t source = 0; source < sources_.size(); ++source) {
      const FsdpParam& param = params_[with_grad_[source]];
      for (Rank rank = 0; rank < shard_size(); ++rank) {
        pieces_.push_back({&sources_[source], param.offset_of(rank), param.numel_of(rank), rank * part + at});
      }
      at += param.padded_numel();
    }
    fill_flat(input, pieces_);
  }
  sources_.clear();
}

void FsdpParamGroup::reduce_scatter(const DivideFactors& factors, Site site) {
  if (shard_size() > 1 || !this_rank().torch->fully_shard_skips_alone) {
    const Scope scope(reduce_label_, reduce_pairing_);
    reduce_scatter_tensor(reduce_output_, reduce_scatter_input_,
                          {.op = factors.reduce_scatter, .group = mesh_.shard, .factor = factors.premul},
                          site);
    return;
  }
  reduce_output_.copy_(reduce_scatter_input_);
  divide_if_needed(reduce_output_, gradient_divide_factor.value_or(1));
}

void FsdpParamGroup::all_reduce(const DivideFactors& factors, Site site) {
  if (partial_reduce_output_) {
    reduce_output_.add_(std::exchange(partial_reduce_output_, Tensor()));
  }
  const StreamScope stream(context_.all_reduce);
  context_.last_reduced->wait();
  const Scope scope(reduce_label_, reduce_pairing_);
  rollcall::all_reduce(reduce_output_, {.op = factors.all_reduce, .group = mesh_.replicate}, site);
  context_.last_all_reduced.emplace().record();
  reduced_event_ = context_.last_all_reduced;
}

void FsdpParamGroup::settle_gradients() {
  if (reduced_.empty()) {
    return;
  }
  divide_if_needed(reduce_output_, divide_after_);
  const Dtype dtype = params_[reduced_.front()].dtype();
  const Tensor flat = reduce_output_.dtype() == dtype ? reduce_output_ : reduce_output_.to(dtype);
  std::int64_t at = 0;
  for (const std::uint32_t i : reduced_) {
    FsdpParam& param = params_[i];
    if (flat.is_meta()) {
      param.add_gradient(Tensor::meta(param.sharded.value.shape(), dtype, flat.device()));
    } else {
      Tensor gradient = param.gradient_slot();
      unflatten_from(flat, at, gradient);
      param.add_gradient(std::move(gradient));
    }
    at += param.padded_numel();
  }
  reduced_.clear();
}

void FsdpParamGroup::finalize_backward() {
  wait_once(context_.last_reduced);
  wait_once(context_.last_all_reduced);
  reduced_event_.reset();
  wait_once(gathered_);  // prefetched, and then not needed
  forwards_.clear();
}

// Every rank's part of it, in order; anything beyond its end is padding.
Tensor FsdpParamGroup::unsharded_param(std::size_t index) const {
  if (!is_unsharded()) {
    throw RuntimeError(fmt::format("{} is sharded", params_[index].sharded.name));
  }
  const FsdpParam& param = params_[index];
  const Tensor& gathered = all_gather_output_;
  const Device device = gathered.device();
  if (gathered.is_meta()) {
    return Tensor::meta(param.shape(), param.compute_dtype(), device);
  }
  Tensor whole = Tensor::zeros(param.shape(), param.compute_dtype(), device);
  if (fill_if_alike(whole, {&gathered, 1})) {
    return whole;
  }
  const std::int64_t parts = shard_size() / gathered_from_;
  const std::int64_t row = gathered.numel() / gathered_from_;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < index; ++i) {
    at += params_[i].padded_numel() * parts;
  }
  const std::int64_t part = param.padded_numel() * parts;
  std::vector<FlatPiece> pieces;
  for (Rank rank = 0; rank < gathered_from_ && rank * part < whole.numel(); ++rank) {
    pieces.push_back({&gathered, rank * row + at, std::min(part, whole.numel() - rank * part), rank * part});
  }
  fill_flat(whole, pieces);
  return whole;
}

}  // namespace rollcall
