#include "sim/train/reducer.h"

#include <limits>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/expects.h"
#include "sim/c10d/warnings.h"
#include "sim/train/flat.h"

namespace rollcall {
namespace {

TensorList values_of(const std::vector<Parameter*>& parameters) {
  TensorList values;
  values.reserve(parameters.size());
  for (const Parameter* parameter : parameters) {
    values.push_back(parameter->value);
  }
  return values;
}

}  // namespace

Reducer::Reducer(std::vector<Parameter*> parameters, ReducerOptions options)
    : parameters_(std::move(parameters)),
      options_(std::move(options)),
      bucket_pairing_("ddp.bucket" + options_.pairing),
      unused_pairing_("ddp.unused_bitmap" + options_.pairing),
      rebuild_pairing_("ddp.rebuild" + options_.pairing),
      ready_(parameters_.size()) {
  expects(!parameters_.empty(), "a reducer has parameters: DDP refuses a module without");
  // distributed.py, _ddp_init_helper: without detection of unused parameters one bucket per dtype is enough
  // for the first iteration, as the buckets are rebuilt afterwards.
  std::vector<std::int64_t> limits = options_.bucket_limits;
  if (!detects_unused_parameters() && !options_.limits_first_pass) {
    limits = {std::numeric_limits<std::int64_t>::max()};
  }
  BucketIndices indices = assign_buckets(values_of(parameters_), limits);
  initialize_buckets({indices.rbegin(), indices.rend()});
  if (options_.find_unused_parameters || options_.static_graph) {
    used_.resize(parameters_.size());
    used_everywhere_ = int_tensor(used_, parameters_.front()->value.device());
  }
  if (options_.static_graph) {
    static_hooks_.resize(parameters_.size());
  }
}

void Reducer::register_comm_hook(CommHook hook) {
  if (hook_) {
    throw RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.");
  }
  hook_ = std::move(hook);
}

void Reducer::set_forward_pass_work(const Work& work, const Tensor& active_ranks,
                                    bool use_initial_world_size) {
  forward_work_ = work;
  active_ranks_ = active_ranks;
  use_initial_world_size_ = use_initial_world_size;
}

void Reducer::prepare_for_backward(std::vector<std::uint32_t> unused) {
  expects_gradients_ = true;
  next_bucket_ = 0;
  for (Bucket& bucket : buckets_) {
    bucket.pending = bucket.variables.size();
  }
  static_hooks_left_ = static_hooks_;
  has_marked_unused_ = false;
  ready_.assign(parameters_.size(), false);
  if (detects_unused_parameters()) {
    unused_ = std::move(unused);
    if (unused_.empty()) {
      // reducer.cpp, search_unused_parameters; once per process, as warnings are. C++ writes it to stderr itself:
      // Python never sees it.
      warn(
          "Warning: find_unused_parameters=True was specified in DDP constructor, but did not find any "
          "unused parameters in the forward pass. This flag results in an extra traversal of the autograd "
          "graph every iteration,  which can adversely affect performance. If your model indeed never has "
          "any unused parameters in the forward pass, consider turning this flag off. Note that this "
          "warning may be a false positive if your model has flow control causing later iterations to have "
          "unused parameters.");
    }
  }
}

void Reducer::initialize_buckets(BucketIndices indices) {
  if (expects_gradients_) {
    throw RuntimeError("`initialize_buckets` must NOT be called during autograd execution.");
  }
  buckets_.clear();
  places_.resize(parameters_.size());
  std::size_t placed = 0;
  for (std::vector<std::uint32_t>& variables : indices) {
    expects(!variables.empty(), "a bucket holds a parameter");
    placed += variables.size();
    for (std::size_t i = 0; i < variables.size(); ++i) {
      places_[variables[i]] = {static_cast<std::uint32_t>(buckets_.size()), static_cast<std::uint32_t>(i)};
    }
    buckets_.push_back({.variables = std::move(variables)});
  }
  expects(placed == parameters_.size(), "every parameter is in one bucket");
}

}  // namespace rollcall
