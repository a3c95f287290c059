#include "scenarios/run/rank_frame.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "sim/base/error.h"
#include "sim/base/expects.h"
#include "sim/c10d/backend_traits.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/observer.h"
#include "sim/c10d/op_table.h"
#include "sim/c10d/rank_context.h"

namespace rollcall::scenario {

RankFrame::RankFrame(const Scenario& scenario, Rank rank, RunState& state)
    : variables(scenario.program->variables.size()),
      tensors(scenario.program->tensor_names.size()),
      lists(scenario.program->list_names.size()),
      objects(scenario.program->object_lists.size()),
      events(scenario.program->events.size()),
      caught(scenario.program->tries),
      scenario_(scenario),
      program_(*scenario.program),
      rank_(rank),
      local_rank_(scenario.local_rank(rank)),
      state_(state),
      groups_(program_.groups.size()),
      works_(program_.work_names.size()),
      streams_(program_.streams.size()),
      queues_calls_(traits_of(scenario.options.backend).queues_calls),
      calls_block_(scenario.blocking_wait || !queues_calls_),
      uses_(!calls_block_ && !program_.streams.empty()),
      gpu_(scenario.options.cluster ? cost::find_gpu(*scenario.options.cluster) : nullptr),
      compares_states_(state.decisions != nullptr && state.decisions->compares_states() &&
                       is_plain(program_)) {
  set(builtin::rank, rank);
  set(builtin::local_rank, local_rank_);
  set(builtin::world_size, scenario.options.world_size);
  for (const auto& [variable, value] : program_.constants) {
    set(variable, value);
  }
  for (std::size_t dim = 0; dim < program_.mesh_variables.size(); ++dim) {
    set(program_.mesh_variables[dim], scenario.mesh.place_in(scenario.mesh_dims[dim].of, rank));
  }
  joinables.reserve(program_.objects.size());
  for (const ObjectSpec& object : program_.objects) {
    joinables.emplace_back(*this, object);
  }
}

std::int64_t RankFrame::evaluate(const Operand& operand) const {
  switch (operand.kind) {
    case Operand::Kind::integer:
      return operand.integer;
    case Operand::Kind::expression:
      return program_.expressions[operand.expression].evaluate(variables, program_.variables);
    case Operand::Kind::real:
    case Operand::Kind::absent:
      break;
  }
  expects(false, "only integers and expressions are evaluated");
  return 0;
}

Rank RankFrame::rank_of(const Operand& operand) const {
  const std::int64_t rank = evaluate(operand);
  const Rank world_size = scenario_.options.world_size;
  if (rank < 0 || rank >= world_size) {
    throw ValueError(fmt::format("rank {} is out of range: the world has {} ranks", rank, world_size));
  }
  return static_cast<Rank>(rank);
}

double RankFrame::amount(const Operand& operand) const {
  const double value = !operand                              ? 0
                       : operand.kind == Operand::Kind::real ? operand.real
                                                             : static_cast<double>(evaluate(operand));
  if (value < 0) {
    throw ValueError(fmt::format("a kernel cannot do {} flops or bytes of work", value));
  }
  return value;
}

Duration RankFrame::time_of(const cost::KernelWork& work) const {
  const std::optional<Duration> time = gpu_ != nullptr ? cost::time_of(*gpu_, work) : std::nullopt;
  if (!time) {
    throw RuntimeError("nothing is known about the speed of this cluster's GPUs at such kernels");
  }
  return *time;
}

void RankFrame::set_elements(const Tensor& tensor, const Operand& value) const {
  if (tensor.is_meta()) {
    return;
  }
  Storage& storage = *tensor.settle().storage();
  storage.set_uniform(value.kind == Operand::Kind::real ? encode(value.real, storage.dtype)
                                                        : encode_integer(evaluate(value), storage.dtype));
}

namespace {

// True if another owner, such as an asynchronous call, still uses the tensor.
bool is_shared(const Tensor& tensor, std::uint32_t own_handles = 1) {
  return tensor.storage()->references.load(std::memory_order_relaxed) > own_handles;
}

bool agrees(const Tensor& tensor, std::int64_t numel, Dtype dtype, Device device) {
  return tensor && tensor.numel() == numel && tensor.dtype() == dtype && tensor.device() == device;
}

void require_size(std::int64_t numel) {
  if (numel < 0 || numel > numel_max) {
    throw RuntimeError(numel < 0 ? fmt::format("Trying to create tensor with negative dimension {}", numel)
                                 : fmt::format("a tensor of {} elements is too large", numel));
  }
}

}  // namespace

Tensor& RankFrame::shape(const TensorSpec& spec, std::int64_t default_numel) {
  finish(spec.slot);
  Tensor& tensor = tensors[spec.slot];
  const bool keeps = tensor && !spec.scratch;  // what the statement leaves open stays unchanged
  if (!tensor && !spec.creates) {
    throw Error("NameError", fmt::format("name '{}' is not defined", program_.tensor_names[spec.slot]));
  }
  const Dtype dtype = spec.dtype ? *spec.dtype : keeps ? tensor.dtype() : Dtype::float32;
  const Device device = spec.device ? spec.device->resolve(rank_, local_rank_)
                        : keeps     ? tensor.device()
                                    : this_rank().device;
  const Shape* shape = spec.shape != none ? &program_.shapes[spec.shape] : nullptr;
  const std::int64_t numel = shape != nullptr ? shape->numel()
                             : spec.numel     ? evaluate(spec.numel)
                             : keeps          ? tensor.numel()
                                              : default_numel;
  if (!agrees(tensor, numel, dtype, device) || (spec.scratch && is_shared(tensor))) {
    require_size(numel);
    tensor = Tensor::ones(shape != nullptr ? *shape : Shape{numel}, dtype, device);
  }
  return tensor;
}

Tensor& RankFrame::make(const TensorSpec& spec, std::int64_t default_numel) {
  Tensor& tensor = shape(spec, default_numel);
  if (spec.value) {
    set_elements(tensor, spec.value);
  }
  return tensor;
}

Tensor& RankFrame::output(SlotIndex slot, std::int64_t numel, const Tensor& model) {
  finish(slot);
  Tensor& tensor = tensors[slot];
  if (!agrees(tensor, numel, model.dtype(), model.device()) || is_shared(tensor)) {
    tensor = Tensor::zeros({numel}, model.dtype(), model.device());
  }
  return tensor;
}

TensorList& RankFrame::list(SlotIndex slot, std::size_t count, const Tensor& model, bool alike) {
  TensorList& list = lists[slot];
  const std::size_t handles = alike ? count : 1;
  if (list.size() == count && count > 0 &&
      agrees(list.front(), model.numel(), model.dtype(), model.device()) &&
      !is_shared(list.front(), static_cast<std::uint32_t>(handles))) {
    return list;
  }
  list.clear();
  const auto fresh = [&] { return Tensor::zeros(model.shape(), model.dtype(), model.device()); };
  if (alike) {
    list.assign(count, fresh());
  } else {
    std::generate_n(std::back_inserter(list), count, fresh);
  }
  return list;
}

const TensorList& RankFrame::read_list(SlotIndex slot) const {
  if (lists[slot].empty()) {
    throw Error("NameError", fmt::format("name '{}' is not defined", program_.list_names[slot]));
  }
  return lists[slot];
}

const Tensor& RankFrame::read(const TensorName& name) const {
  if (!name.is_list) {
    finish(name.slot);
    const Tensor& tensor = tensors[name.slot];
    if (!tensor) {
      throw Error("NameError", fmt::format("name '{}' is not defined", program_.tensor_names[name.slot]));
    }
    return tensor;
  }
  const TensorList& list = read_list(name.slot);
  if (name.element < 0) {
    throw TypeError(fmt::format("'{}' is a list of {} tensors; choose one of them",
                                program_.list_names[name.slot], list.size()));
  }
  if (static_cast<std::size_t>(name.element) >= list.size()) {
    throw Error("IndexError", "list index out of range");
  }
  return list[static_cast<std::size_t>(name.element)];
}

const std::vector<Work>& RankFrame::issued_works(SlotIndex slot) const {
  const IssuedCall& call = works_[slot];
  if (!call.issued) {
    throw Error("NameError", fmt::format("name '{}' is not defined", program_.work_names[slot]));
  }
  return call.works;
}

Stream RankFrame::stream(SlotIndex slot) {
  if (slot == no_slot) {
    return current_stream();
  }
  if (!streams_[slot]) {
    streams_[slot] = new_stream();
  }
  return *streams_[slot];
}

void RankFrame::contribute(SlotIndex tensor, const ProcessGroup& group, double value) {
  if (program_.checks) {
    state_.contributions.note(rank_, program_.tensor_names[tensor], {group.name(), calls_[group.id()]},
                              value);
  }
}

// Whether a handle stays although no name has it: `synchronize` waits for all of them.
bool RankFrame::keeps_all_works() const { return program_.synchronizes && calls_block_; }

// As in Python, a name's last handle goes when the name has a new one.
void RankFrame::keep_work(SlotIndex slot, const Work& work) {
  if (keeps_all_works()) {
    open_works_.push_back(work);
  }
  if (slot == no_slot) {
    let_go({&work, 1});
  } else {
    let_go(works_[slot].works);
    works_[slot].issued = true;
    works_[slot].works.assign(1, work);
  }
}

void RankFrame::keep_works(SlotIndex slot, std::vector<Work> works) {
  if (keeps_all_works()) {
    open_works_.insert(open_works_.end(), works.begin(), works.end());
  }
  if (slot == no_slot) {
    let_go(works);
  } else {
    let_go(works_[slot].works);
    works_[slot] = {true, std::move(works)};
  }
}

void RankFrame::drop_works(SlotIndex slot) {
  let_go(issued_works(slot));
  works_[slot].issued = false;
}

void RankFrame::let_go(std::span<const Work> works) {
  for (const Work& work : works) {
    if (work.is_point_to_point() && !keeps_all_works()) {
      this_rank().backend->drop(work);
    }
  }
}

std::vector<Work> RankFrame::take_open_works() {
  uses_.await_all();
  return std::exchange(open_works_, {});
}

void RankFrame::use(const TensorUse& tensor_use, bool is_awaited) {
  const bool has_name = !name_of(tensor_use.tensor).empty();
  if (has_name && is_awaited) {
    uses_.add_awaited(tensor_use, current_stream());
  } else if (has_name) {
    uses_.add(tensor_use, current_stream());
  }
}

void RankFrame::keep_coalesced(SlotIndex slot, CoalescingManager manager) {
  keep_works(slot, manager.work().is_nothing() ? std::vector<Work>() : std::vector<Work>{manager.work()});
  if (slot != no_slot) {
    works_[slot].coalesced = std::move(manager);
  } else {
    open_coalesced_.push_back(std::move(manager));
  }
}

void RankFrame::finish_coalesced() {
  for (IssuedCall& call : works_) {
    if (call.coalesced) {
      call.coalesced->wait();
      call.coalesced.reset();
    }
  }
  for (CoalescingManager& manager : open_coalesced_) {
    manager.wait();
  }
  open_coalesced_.clear();
}

void RankFrame::release(SlotIndex work) {
  if (std::optional<CoalescingManager>& coalesced = works_[work].coalesced) {
    coalesced->wait();
    coalesced.reset();
  }
  uses_.await(work, current_stream());
  std::erase_if(open_works_, [this, work](const Work& open) {
    return std::ranges::any_of(works_[work].works, [&open](const Work& done) {
      return done.group() == open.group() && done.seq() == open.seq() &&
             done.is_point_to_point() == open.is_point_to_point();
    });
  });
}

void RankFrame::finish_at_use(SlotIndex tensor, const Work& work) {
  keep_work(no_slot, work);
  if (!work.is_nothing()) {
    results_.emplace_back(tensor, work);
  }
}

void RankFrame::finish(SlotIndex tensor) const {
  const auto found = std::ranges::find(results_, tensor, &std::pair<SlotIndex, Work>::first);
  if (found != results_.end()) [[unlikely]] {
    const Work work = found->second;
    results_.erase(found);
    work.wait();
  }
}

void RankFrame::touch(TensorKey tensor, Observation::Access access, Site site) {
  if (!tensor.is_list) {
    finish(tensor.slot);
  }
  if (const TensorUse* known = uses_.find_open(tensor, access, current_stream())) {
    report_touch(*known, access, site);
  }
}

void RankFrame::touch(const TensorUse& tensor_use) {
  if (name_of(tensor_use.tensor).empty()) {
    return;
  }
  const Observation::Access access =
      tensor_use.writes ? Observation::Access::write : Observation::Access::read;
  const TensorUse* known = uses_.find_open(tensor_use.tensor, access, current_stream(), tensor_use.queue);
  if (known != nullptr) {
    report_touch(*known, access, tensor_use.op.site, row_of(tensor_use.op.kind).name);
  }
}

void RankFrame::report_touch(const TensorUse& known, Observation::Access access, Site site,
                             std::string_view by) {
  Observation observation{.kind = Observation::Kind::touched_early, .access = access};
  observation.tensor = name_of(known.tensor);
  observation.handle = known.work == no_slot ? "" : program_.work_names[known.work];
  if (!known.waits.empty()) {
    observation.ordered = name_of(known.waits.front().stream);
    observation.unordered = name_of(current_stream());
  }
  observation.by = by;
  observation.op = known.op;
  observation.seq = known.seq;
  observation.site = site;
  this_rank().backend->observer().observe(observation);
}

std::optional<CallQueue> RankFrame::queue_of(const ProcessGroup& group, Rank peer) const {
  return queues_calls_ && group.is_member() ? std::optional(CallQueue{group.id(), peer}) : std::nullopt;
}

const std::string& RankFrame::name_of(TensorKey tensor) const {
  return (tensor.is_list ? program_.list_names : program_.tensor_names)[tensor.slot];
}

const std::string& RankFrame::name_of(Stream stream) const {
  static const std::string default_stream = "default";
  const auto found = std::ranges::find(streams_, std::optional(stream));
  return found == streams_.end() ? default_stream
                                 : program_.streams[static_cast<std::size_t>(found - streams_.begin())];
}

[[gnu::noinline]] void RankFrame::construct_objects() {
  for (const ObjectSpec& object : program_.objects) {
    parallel_.push_back(make_parallel_object(*this, object));
  }
  for (const ObjectSpec& object : program_.objects) {
    trained_.push_back(make_trained_object(*this, object));
  }
}

Joinable& RankFrame::joinable(TableIndex object) {
  Joinable* const own = trained_[object] ? trained_[object]->joinable() : nullptr;
  return own != nullptr ? *own : joinables[object];
}

TrainedObject& RankFrame::trained(TableIndex object) const {
  if (!trained_[object]) {
    refuse(object);
  }
  return *trained_[object];
}

const ParallelObject& RankFrame::parallel(TableIndex object) const {
  if (!parallel_[object]) {
    refuse(object);
  }
  return parallel_[object];
}

void RankFrame::refuse(TableIndex object) const {
  throw Error("NameError", fmt::format("name '{}' is not defined: rank {} does not belong to its group",
                                       program_.objects[object].name, rank_));
}

ProcessGroup RankFrame::group(SlotIndex slot) {
  if (slot == no_slot) {
    return world();
  }
  ProcessGroup& group = groups_[slot];
  if (!group && program_.makes_group[slot]) {
    throw Error("NameError", fmt::format("name '{}' is not defined", program_.groups[slot]));
  }
  if (!group) {
    group = scenario_.mesh_group(program_.groups[slot], rank_);
  }
  if (!group) {
    group = find_group(program_.groups[slot]);
    expects(static_cast<bool>(group), "a group that the scenario defines exists when its ranks run");
  }
  return group;
}

}  // namespace rollcall::scenario
