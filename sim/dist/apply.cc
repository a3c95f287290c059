#include "sim/dist/apply.h"

#include <cstring>

#include "sim/dist/expects.h"

namespace rollcall {
namespace {

// A run of elements inside a storage, which may be a part of it (one rank's share of a flat tensor).
struct View {
  Storage* storage = nullptr;
  std::int64_t offset = 0;
  std::int64_t count = 0;

  bool uniform() const { return storage->form == Storage::Form::uniform; }
  bool whole() const { return offset == 0 && count == storage->numel; }
  Bits at(std::int64_t i) const { return storage->at(offset + i); }
};

View whole(Storage* storage) { return {storage, 0, storage->numel}; }
View whole(const Tensor& tensor) { return whole(tensor.storage()); }

// The r-th of `parts` equal parts.
View part(Storage* storage, std::size_t r, std::size_t parts) {
  const std::int64_t count = storage->numel / static_cast<std::int64_t>(parts);
  return {storage, static_cast<std::int64_t>(r) * count, count};
}

void store(Storage& storage, std::int64_t index, Bits bits) {
  const std::size_t size = size_of(storage.dtype);
  std::memcpy(storage.elements.data() + static_cast<std::size_t>(index) * size, &bits, size);
}

void copy(const View& target, const View& source) {
  if (target.count == 0 || target.storage->form == Storage::Form::meta ||
      source.storage->form == Storage::Form::meta) {
    return;
  }
  if (source.uniform() && (target.whole() || (target.uniform() && target.storage->value == source.at(0)))) {
    target.storage->set_uniform(source.at(0));
    return;
  }
  target.storage->make_dense();
  for (std::int64_t i = 0; i < target.count; ++i) {
    store(*target.storage, target.offset + i, source.at(i));
  }
}

Bits reduce_element(const Op& op, std::span<const View> sources, std::int64_t i) {
  Bits total = sources.front().at(i);
  for (const View& source : sources.subspan(1)) {
    total = reduce_step(op.reduce, op.dtype, total, source.at(i));
  }
  return op.reduce == ReduceOp::avg
             ? finish_average(op.dtype, total, static_cast<std::int64_t>(sources.size()))
             : total;
}

// The reduction of `sources` in a storage of its own, because sources and targets may be the same.
Tensor reduced(const Op& op, std::span<const View> sources) {
  const std::int64_t count = sources.front().count;
  bool all_uniform = count > 0;
  for (const View& source : sources) {
    if (source.storage->form == Storage::Form::meta) {
      return Tensor::meta({count}, op.dtype);
    }
    all_uniform = all_uniform && source.uniform();
  }
  Tensor result = Tensor::zeros({count}, op.dtype);
  if (all_uniform) {
    result.storage()->set_uniform(reduce_element(op, sources, 0));
    return result;
  }
  result.storage()->make_dense();
  for (std::int64_t i = 0; i < count; ++i) {
    store(*result.storage(), i, reduce_element(op, sources, i));
  }
  result.storage()->collapse_if_uniform();
  return result;
}

// Copies of the inputs, for the kinds where one member's output may be another's input.
TensorList snapshots(std::span<const OpTensors> members) {
  TensorList copies;
  for (const OpTensors& member : members) {
    copies.push_back(Tensor::share(*member.input).clone());
  }
  return copies;
}

void apply_reduction(const Op& op, std::span<const OpTensors> members) {
  std::vector<View> sources;
  for (const OpTensors& member : members) {
    sources.push_back(whole(member.input));
  }
  const Tensor result = reduced(op, sources);
  for (std::size_t r = 0; r < members.size(); ++r) {
    if (op.kind == OpKind::all_reduce || static_cast<Rank>(r) == op.root) {
      copy(whole(members[r].input), whole(result));
    }
  }
}

void apply_broadcast(const Op& op, std::span<const OpTensors> members) {
  Storage* source = members[static_cast<std::size_t>(op.root)].input;
  for (const OpTensors& member : members) {
    if (member.input != source) {
      copy(whole(member.input), whole(source));
    }
  }
}

void apply_all_gather(std::span<const OpTensors> members) {
  const TensorList inputs = snapshots(members);
  for (const OpTensors& member : members) {
    for (std::size_t r = 0; r < inputs.size(); ++r) {
      const View target =
          member.outputs != nullptr ? whole((*member.outputs)[r]) : part(member.output, r, inputs.size());
      copy(target, whole(inputs[r]));
    }
    if (member.output != nullptr) {
      member.output->collapse_if_uniform();
    }
  }
}

void apply_gather(const Op& op, std::span<const OpTensors> members) {
  const TensorList& outputs = *members[static_cast<std::size_t>(op.root)].outputs;
  for (std::size_t r = 0; r < members.size(); ++r) {
    copy(whole(outputs[r]), whole(members[r].input));
  }
}

void apply_scatter(const Op& op, std::span<const OpTensors> members) {
  const TensorList& inputs = *members[static_cast<std::size_t>(op.root)].inputs;
  for (std::size_t r = 0; r < members.size(); ++r) {
    copy(whole(members[r].output), whole(inputs[r]));
  }
}

void apply_reduce_scatter(const Op& op, std::span<const OpTensors> members) {
  TensorList results;
  std::vector<View> sources(members.size());
  for (std::size_t r = 0; r < members.size(); ++r) {
    for (std::size_t s = 0; s < members.size(); ++s) {
      sources[s] = members[s].inputs != nullptr ? whole((*members[s].inputs)[r])
                                                : part(members[s].input, r, members.size());
    }
    results.push_back(reduced(op, sources));
  }
  for (std::size_t r = 0; r < members.size(); ++r) {
    copy(whole(members[r].output), whole(results[r]));
  }
}

void apply_all_to_all(std::span<const OpTensors> members) {
  std::vector<TensorList> sent(members.size());
  for (std::size_t s = 0; s < members.size(); ++s) {
    if (members[s].inputs == nullptr) {
      sent[s].push_back(Tensor::share(*members[s].input).clone());
      continue;
    }
    for (const Tensor& tensor : *members[s].inputs) {
      sent[s].push_back(tensor.clone());
    }
  }
  for (std::size_t r = 0; r < members.size(); ++r) {
    for (std::size_t s = 0; s < members.size(); ++s) {
      const bool lists = members[s].inputs != nullptr;
      const View source = lists ? whole(sent[s][r]) : part(sent[s].front().storage(), r, members.size());
      const View target =
          lists ? whole((*members[r].outputs)[s]) : part(members[r].output, s, members.size());
      copy(target, source);
    }
    if (members[r].output != nullptr) {
      members[r].output->collapse_if_uniform();
    }
  }
}

}  // namespace

void apply_op(const Op& op, std::span<const OpTensors> members) {
  expects(!members.empty(), "a collective has members");
  switch (op.kind) {
    case OpKind::all_reduce:
    case OpKind::reduce:
      return apply_reduction(op, members);
    case OpKind::broadcast:
      return apply_broadcast(op, members);
    case OpKind::all_gather:
    case OpKind::all_gather_into_tensor:
      return apply_all_gather(members);
    case OpKind::gather:
      return apply_gather(op, members);
    case OpKind::scatter:
      return apply_scatter(op, members);
    case OpKind::reduce_scatter:
    case OpKind::reduce_scatter_tensor:
      return apply_reduce_scatter(op, members);
    case OpKind::all_to_all:
    case OpKind::all_to_all_single:
      return apply_all_to_all(members);
    case OpKind::barrier:
      return;
  }
}

bool has_uniform_form(OpKind kind) {
  return kind == OpKind::all_reduce || kind == OpKind::broadcast || kind == OpKind::reduce;
}

void apply_uniform(const Op& op, std::span<const Bits> values, std::span<Storage* const> storages) {
  expects(values.size() == storages.size() && !values.empty(), "every member has a value and a storage");
  constexpr std::size_t prefetch_distance = 8;
  Bits result = 0;
  if (op.kind == OpKind::broadcast) {
    result = values[static_cast<std::size_t>(op.root)];
  } else {
    result = reduce_all(op.reduce, op.dtype, values);
  }
  if (op.kind == OpKind::reduce) {
    storages[static_cast<std::size_t>(op.root)]->set_uniform(result);
    return;
  }
  for (std::size_t r = 0; r < storages.size(); ++r) {
    if (r + prefetch_distance < storages.size()) {
      __builtin_prefetch(storages[r + prefetch_distance], 1);
    }
    if (storages[r]->form == Storage::Form::uniform) [[likely]] {
      storages[r]->value = result;
    } else {
      storages[r]->set_uniform(result);
    }
  }
}

}  // namespace rollcall
