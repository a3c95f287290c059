#include "sim/dtensor/parallel_module.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include <fmt/core.h>

#include "sim/base/error.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/groups.h"
#include "sim/c10d/rank_context.h"
#include "sim/c10d/scope.h"
#include "sim/dtensor/tensor_parts.h"

namespace rollcall {
namespace {

int last_dim(const Shape& shape) { return static_cast<int>(shape.sizes().size()) - 1; }

Shape with_last(const Shape& shape, std::int64_t size) {
  return detail::with_size(shape, last_dim(shape), size);
}

// The shape with one more dimension at its end.
Shape with_appended(const Shape& shape, std::int64_t size) {
  std::vector<std::int64_t> sizes(shape.sizes().begin(), shape.sizes().end());
  sizes.push_back(size);
  return Shape(std::span<const std::int64_t>(sizes));
}

}  // namespace

// Passes a value through the layers once, and its gradient back, and notes the collectives on the way.
class ParallelModule::Planner {
 public:
  explicit Planner(ParallelModule& module) : module_(module), members_(module.group_.size()) {
    value_.shape = module.input_.shape;
  }

  void plan() {
    for (const ParallelLayer& layer : module_.layers_) {
      const Value input = value_;
      for (int i = 0; i < layer.count; ++i) {
        value_ = input;
        changes_.emplace_back();
        pass(layer);
      }
    }
    plan_backward();
  }

 private:
  // A value on its way through the layers, or its gradient on the way back.
  struct Value {
    bool is_dtensor = false;
    Placement placement;  // of a DTensor
    Shape shape{1};       // of a DTensor the whole, otherwise what the rank has
  };

  // What a layer did to a value, so that backward can undo it.
  struct Change {
    enum class Kind : std::uint8_t { from_local, redistribute, to_local, linear, norm, embedding };

    Kind kind;
    Value before;
    Value after;
  };

  static bool has_parameters(Change::Kind kind) {
    return kind == Change::Kind::linear || kind == Change::Kind::norm || kind == Change::Kind::embedding;
  }

  // A layer's forward, between the hooks of its style.
  void pass(const ParallelLayer& layer) {
    switch (layer.style) {
      case ParallelStyle::colwise:
        return pass_colwise(layer);
      case ParallelStyle::rowwise:
        return pass_rowwise(layer);
      case ParallelStyle::sequence:
        return pass_norm(layer);
      case ParallelStyle::prepare_input:
        prepare(layer.input_layouts, layer.desired_input_layouts, layer.use_local_output.value_or(false));
        return;
      case ParallelStyle::prepare_output:
        prepare(layer.output_layouts, layer.desired_output_layouts, layer.use_local_output.value_or(true));
        return;
    }
  }

  void pass_colwise(const ParallelLayer& layer) {
    take_input(layer, Replicate(), Replicate());
    compute(layer, Replicate(), Shard(-1));
    give_output(layer, Shard(-1));
  }

  // nn.Linear wants its input sharded like its weight, nn.Embedding wants all indices.
  void pass_rowwise(const ParallelLayer& layer) {
    const Placement desired = layer.is_embedding ? Replicate() : Shard(-1);
    take_input(layer, Shard(-1), desired);
    compute(layer, desired, Partial());
    give_output(layer, Replicate());
  }

  void pass_norm(const ParallelLayer& layer) {
    const Placement sequence = Shard(layer.sequence_dim);
    from_local(sequence);
    redistribute(sequence);
    note(Change::Kind::norm, value_);
    for (int parameter = 0; parameter < (layer.has_bias ? 2 : 1); ++parameter) {
      add_step(detail::size_at(value_.shape, last_dim(value_.shape)));
    }
    if (layer.use_local_output.value_or(false)) {
      to_local();
    }
  }

  void prepare(const std::optional<Placement>& layouts, const std::optional<Placement>& desired,
               bool is_local) {
    if (!layouts || !desired) {
      throw AssertionError("desired module inputs should not be None!");
    }
    from_local(*layouts);
    if (*layouts != *desired) {
      redistribute(*desired);
    }
    if (is_local) {
      to_local();
    }
  }

  void take_input(const ParallelLayer& layer, const Placement& usual, const Placement& desired) {
    const Placement layouts = layer.input_layouts.value_or(usual);
    from_local(layouts);
    if (layouts != desired) {
      redistribute(desired);
    }
  }

  void give_output(const ParallelLayer& layer, const Placement& usual) {
    redistribute(layer.output_layouts.value_or(usual));
    if (layer.use_local_output.value_or(true)) {
      to_local();
    }
  }

  void compute(const ParallelLayer& layer, const Placement& wanted, const Placement& result) {
    const Shape& shape = value_.shape;
    if (value_.placement != normalized(wanted, shape.sizes().size())) {
      throw NotImplementedError(
          fmt::format("a layer that wants its input as {} gets it as {}: name its input_layouts",
                      to_string(wanted), to_string(value_.placement)));
    }
    const std::int64_t width = detail::size_at(shape, last_dim(shape));
    if (!layer.is_embedding && width != layer.in_features) {
      throw RuntimeError(fmt::format("mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})",
                                     shape.numel() / width, width, layer.in_features, layer.out_features));
    }
    Value after = value_;
    after.shape =
        layer.is_embedding ? with_appended(shape, layer.out_features) : with_last(shape, layer.out_features);
    after.placement = normalized(result, after.shape.sizes().size());
    note(layer.is_embedding ? Change::Kind::embedding : Change::Kind::linear, after);
  }

  // Does nothing to a DTensor.
  void from_local(Placement placement) {
    if (value_.is_dtensor) {
      return;
    }
    Value after = value_;
    after.is_dtensor = true;
    after.placement = normalized(placement, value_.shape.sizes().size());
    if (after.placement.is_shard()) {
      const int dim = after.placement.dim;
      after.shape = detail::with_size(after.shape, dim, detail::size_at(after.shape, dim) * members_);
    }
    note(Change::Kind::from_local, after);
  }

  void redistribute(Placement placement) {
    Value after = value_;
    after.placement = normalized(placement, value_.shape.sizes().size());
    if (after.placement != value_.placement) {
      exchange(module_.forward_, value_, after.placement);
      note(Change::Kind::redistribute, after);
    }
  }

  void to_local() {
    Value after = value_;
    after.is_dtensor = false;
    if (value_.placement.is_shard()) {
      const int dim = value_.placement.dim;
      after.shape = detail::with_size(
          after.shape, dim,
          detail::chunk_of(detail::size_at(after.shape, dim), members_, module_.group_.rank()).length);
    }
    note(Change::Kind::to_local, after);
  }

  void note(Change::Kind kind, const Value& after) {
    changes_.back().push_back({kind, value_, after});
    value_ = after;
  }

  // In reverse. Layers side by side get the same gradient, and their gradients of the common input are added.
  void plan_backward() {
    Value gradient = value_;
    if (gradient.is_dtensor && gradient.placement.is_partial()) {
      gradient.placement = Replicate();
    }
    std::size_t open = 0;  // passes with parameters, or an input, that still wait for a gradient
    for (const auto& changes : changes_) {
      open += std::ranges::any_of(changes, [](const Change& c) { return has_parameters(c.kind); }) ? 1 : 0;
    }
    for (std::size_t pass = changes_.size(); pass-- > 0;) {
      const Value given = gradient;
      for (const Change& change : std::views::reverse(changes_[pass])) {
        open -= has_parameters(change.kind) ? 1 : 0;
        if (!undo(change, gradient) || (open == 0 && !module_.input_.requires_grad)) {
          return;
        }
      }
      const bool is_beside = pass > 0 && starts_alike(pass - 1, pass);
      gradient = is_beside ? given : gradient;
    }
  }

  // True if two passes are of one layer's copies side by side.
  bool starts_alike(std::size_t first, std::size_t second) const {
    std::size_t end = 0;
    for (const ParallelLayer& layer : module_.layers_) {
      end += static_cast<std::size_t>(layer.count);
      if (first < end) {
        return second < end;
      }
    }
    return false;
  }

  // False if no gradient goes further.
  bool undo(const Change& change, Value& gradient) {
    switch (change.kind) {
      case Change::Kind::to_local:
        gradient = change.before;
        gradient.placement = as_gradient(gradient.placement);
        return true;
      case Change::Kind::redistribute:
        // Nothing becomes partial again: _redistribute_backward.
        move(gradient, gradient.placement.is_partial() ? change.before.placement
                                                       : as_gradient(change.before.placement));
        return true;
      case Change::Kind::from_local:
        move(gradient, as_gradient(change.after.placement));
        gradient = change.before;
        return true;
      case Change::Kind::linear:
        // The product with a weight that is split along its output is a sum over the ranks.
        gradient.shape = change.before.shape;
        gradient.placement = change.after.placement.is_shard() ? Partial() : change.before.placement;
        return true;
      case Change::Kind::norm:
        return true;
      case Change::Kind::embedding:
        return false;  // indices have no gradient
    }
    return false;
  }

  static Placement as_gradient(const Placement& placement) {
    return placement.is_partial() ? Replicate() : placement;
  }

  void move(Value& gradient, const Placement& placement) {
    if (gradient.placement != placement) {
      exchange(module_.backward_, gradient, placement);
      gradient.placement = placement;
    }
  }

  // The collective between two placements, if there is one: see redistribute.h.
  void exchange(std::vector<Exchange>& into, const Value& value, const Placement& to) {
    const Placement& from = value.placement;
    if (members_ == 1 || from.is_replicate() || to.is_partial()) {
      return;
    }
    if (from.is_partial()) {
      if (to.is_replicate()) {
        into.push_back({OpKind::all_reduce, zeros(value.shape.numel()), {}});
        return;
      }
      const std::int64_t whole = padded_numel(value.shape, to.dim);
      into.push_back({OpKind::reduce_scatter_tensor, zeros(whole), zeros(whole / members_)});
      return;
    }
    if (to.is_replicate() || this_rank().device.type == DeviceType::cpu) {
      const std::int64_t whole =
          padded_numel(to.is_shard() ? padded(value.shape, to.dim) : value.shape, from.dim);
      into.push_back({OpKind::all_gather_into_tensor, zeros(whole / members_), zeros(whole)});
      return;
    }
    const std::int64_t part = padded_numel(padded(value.shape, to.dim), from.dim) / members_;
    into.push_back({OpKind::all_to_all_single, zeros(part), zeros(part)});
  }

  Shape padded(const Shape& shape, int dim) const {
    return detail::with_size(shape, dim,
                             detail::largest_chunk(detail::size_at(shape, dim), members_) * members_);
  }
  std::int64_t padded_numel(const Shape& shape, int dim) const { return padded(shape, dim).numel(); }

  void add_step(std::int64_t numel) {
    if (members_ > 1) {
      module_.step_.push_back({OpKind::all_reduce, zeros(numel), {}});
    }
  }

  Tensor zeros(std::int64_t numel) const {
    return Tensor::zeros({numel}, module_.input_.dtype, this_rank().device);
  }

  ParallelModule& module_;
  std::int64_t members_;
  Value value_;
  std::vector<std::vector<Change>> changes_;  // one list per pass through a layer
};

ParallelModule::ParallelModule(ProcessGroup group, const ParallelInput& input,
                               std::vector<ParallelLayer> layers)
    : group_(group), input_(input), layers_(std::move(layers)) {
  if (!group_.is_member()) {
    throw ValueError("a rank outside the group has no part of its modules");
  }
  Planner(*this).plan();
}

// distribute_tensor of each parameter: _partition_linear_fn and _partition_embedding_fn.
void ParallelModule::parallelize(Site site) {
  const Scope scope("parallelize_module");
  const Rank source = get_global_rank(group_, 0);
  const std::int64_t members = group_.size();
  const auto zeros = [&](std::int64_t numel) {
    return Tensor::zeros({numel}, input_.dtype, this_rank().device);
  };
  const auto scatter_cut = [&](std::int64_t cut, std::int64_t other) {
    const std::int64_t numel = detail::largest_chunk(cut, members) * other;
    const TensorList parts(group_.rank() == 0 ? static_cast<std::size_t>(members) : 0, zeros(numel));
    scatter(zeros(numel), parts, source, {.group = group_}, site);
  };
  for (const ParallelLayer& layer : layers_) {
    const bool is_colwise = layer.style == ParallelStyle::colwise;
    const bool has_weight = is_colwise || layer.style == ParallelStyle::rowwise;
    for (int i = 0; i < (has_weight ? layer.count : 0); ++i) {
      const bool cuts_output = is_colwise;  // an embedding's columns are its outputs too
      scatter_cut(cuts_output ? layer.out_features : layer.in_features,
                  cuts_output ? layer.in_features : layer.out_features);
      if (layer.has_bias && !layer.is_embedding && is_colwise) {
        scatter_cut(layer.out_features, 1);
      } else if (layer.has_bias && !layer.is_embedding) {
        broadcast(zeros(layer.out_features), source, {.group = group_}, site);
      }
    }
  }
}

void ParallelModule::run(const std::vector<Exchange>& exchanges, Site site) const {
  for (const Exchange& exchange : exchanges) {
    const bool in_place = works_in_place(exchange.kind);
    CollectiveArguments arguments;
    arguments.input = &exchange.input;
    arguments.output = in_place ? nullptr : &exchange.output;
    arguments.options = {.group = group_};
    call_collective(exchange.kind, arguments, site);
  }
}

void ParallelModule::forward(Site site) { run(forward_, site); }
void ParallelModule::backward(Site site) { run(backward_, site); }
void ParallelModule::step(Site site) { run(step_, site); }

}  // namespace rollcall
