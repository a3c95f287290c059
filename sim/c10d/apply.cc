#include "sim/c10d/apply.h"

#include <algorithm>
#include <optional>

#include "sim/base/expects.h"
#include "sim/tensor/elements.h"

namespace rollcall {
namespace {

const std::vector<std::int64_t> equal_parts;

// A run of elements of a storage: all of it, or a part (one rank's share of a flat tensor).
struct View {
  Storage* storage = nullptr;
  std::int64_t offset = 0;
  std::int64_t count = 0;
  double factor = 1;  // ReduceOp::premul_sum

  bool uniform() const { return storage->form == Storage::Form::uniform; }
  bool whole() const { return offset == 0 && count == storage->numel; }
  Bits at(std::int64_t i) const { return storage->at(offset + i); }
};

View whole(Storage* storage) { return {storage, 0, storage->numel}; }
View whole(const Tensor& tensor) { return whole(tensor.storage()); }

// The parts of a list, one per member.
std::vector<View> parts_of(const TensorList& list) {
  std::vector<View> parts;
  for (const Tensor& tensor : list) {
    parts.push_back(whole(tensor));
  }
  return parts;
}

// The parts of a flat tensor: equal ones, or as many rows each as `rows` says.
std::vector<View> parts_of(Storage* storage, const std::vector<std::int64_t>& rows, std::size_t members) {
  const std::span<const std::int64_t> sizes = storage->shape.sizes();
  const std::int64_t height = sizes.empty() ? storage->numel : sizes.front();
  const std::int64_t row_size = height == 0 ? 1 : storage->numel / height;
  std::vector<View> parts;
  std::int64_t offset = 0;
  for (std::size_t r = 0; r < members; ++r) {
    const std::int64_t count =
        rows.empty() ? storage->numel / static_cast<std::int64_t>(members) : rows[r] * row_size;
    parts.push_back({storage, offset, count});
    offset += count;
  }
  return parts;
}

// The parts that a member hands out, and those that it takes in.
std::vector<View> outgoing(const OpTensors& member, std::size_t members) {
  return member.inputs != nullptr
             ? parts_of(*member.inputs)
             : parts_of(member.input, member.splits != nullptr ? member.splits->input : equal_parts, members);
}
std::vector<View> incoming(const OpTensors& member, std::size_t members) {
  return member.outputs != nullptr
             ? parts_of(*member.outputs)
             : parts_of(member.output, member.splits != nullptr ? member.splits->output : equal_parts,
                        members);
}

// The r-th of `parts` equal parts.
View part(Storage* storage, std::size_t r, std::size_t parts) {
  const std::int64_t count = storage->numel / static_cast<std::int64_t>(parts);
  return {storage, static_cast<std::int64_t>(r) * count, count};
}

void copy(const View& target, const View& source) {
  const std::int64_t count = std::min(target.count, source.count);
  if (count == 0 || target.storage->form == Storage::Form::meta ||
      source.storage->form == Storage::Form::meta) {
    return;
  }
  const bool covers = target.whole() && count == target.count;
  if (source.uniform() && (covers || (target.uniform() && target.storage->value == source.at(0)))) {
    target.storage->set_uniform(source.at(0));
    return;
  }
  if (target.storage->dtype == source.storage->dtype) {
    copy_elements(*target.storage, target.offset, *source.storage, source.offset, count);
    return;
  }
  target.storage->make_dense();  // no backend converts: the bits arrive as they are
  for (std::int64_t i = 0; i < count; ++i) {
    target.storage->set_at(target.offset + i, source.at(i));
  }
}

// What a member adds: with premul_sum its value times its factor, both in the element type
// (ncclRedOpCreatePreMulSum).
Bits contribution(const Op& op, const View& source, std::int64_t i) {
  return op.reduce == ReduceOp::premul_sum
             ? reduce_step(ReduceOp::product, op.dtype, source.at(i), encode(source.factor, op.dtype))
             : source.at(i);
}

Bits reduce_element(const Op& op, std::span<const View> sources, std::int64_t i) {
  Bits total = contribution(op, sources.front(), i);
  for (const View& source : sources.subspan(1)) {
    total = reduce_step(op.reduce, op.dtype, total, contribution(op, source, i));
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
    result.storage()->set_at(i, reduce_element(op, sources, i));
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
    sources.back().factor = member.factor;
  }
  const Tensor result = reduced(op, sources);
  for (std::size_t r = 0; r < members.size(); ++r) {
    if (!has_root(op.kind) || static_cast<Rank>(r) == op.root) {
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

// If all parts of a target hold one value, sets the target as a whole, without touching its elements.
bool fill_at_once(Storage& target, std::span<const View> places, std::span<const View> parts) {
  std::int64_t covered = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool joins_on = places[i].offset == covered && places[i].count == parts[i].count;
    const bool has_value = parts[i].count == 0 || (parts[i].storage->form == Storage::Form::uniform &&
                                                   parts[i].storage->value == parts[0].storage->value);
    if (!joins_on || !has_value) {
      return false;
    }
    covered += parts[i].count;
  }
  if (covered != target.numel || covered == 0 || parts[0].count == 0 || target.form == Storage::Form::meta) {
    return false;
  }
  target.set_uniform(parts[0].storage->value);
  return true;
}

// Copies parts into a flat target or into a list.
void assemble(const OpTensors& member, std::span<const View> places, std::span<const View> parts) {
  if (member.output != nullptr && fill_at_once(*member.output, places, parts)) {
    return;
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    copy(places[i], parts[i]);
  }
  if (member.output != nullptr) {
    member.output->collapse_if_uniform();
  }
}

// True when every member gives the same value, the same number of times.
bool all_alike(std::span<const View> sources) {
  return std::ranges::all_of(sources, [&](const View& source) {
    return source.uniform() && source.count == sources.front().count && source.count > 0 &&
           source.storage->value == sources.front().storage->value;
  });
}

void apply_all_gather(std::span<const OpTensors> members) {
  const TensorList inputs = snapshots(members);
  const std::vector<View> sources = parts_of(inputs);
  const bool is_one_value = all_alike(sources);
  const std::int64_t total = sources.front().count * static_cast<std::int64_t>(sources.size());
  for (const OpTensors& member : members) {
    if (is_one_value && member.output != nullptr && member.output->numel == total &&
        member.output->form != Storage::Form::meta) {
      member.output->set_uniform(sources.front().storage->value);
      continue;
    }
    assemble(member, incoming(member, members.size()), sources);
  }
}

void apply_gather(const Op& op, std::span<const OpTensors> members) {
  const OpTensors& root = members[static_cast<std::size_t>(op.root)];
  std::vector<View> sources;
  for (const OpTensors& member : members) {
    sources.push_back(whole(member.input));
  }
  assemble(root, incoming(root, members.size()), sources);
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
      sources[s].factor = members[s].factor;
    }
    results.push_back(reduced(op, sources));
  }
  for (std::size_t r = 0; r < members.size(); ++r) {
    copy(whole(members[r].output), whole(results[r]));
  }
}

// A copy of everything that a member hands out; its parts are views of the copy.
TensorList copies_of_input(const OpTensors& member) {
  TensorList copies;
  if (member.inputs == nullptr) {
    copies.push_back(Tensor::share(*member.input).clone());
    return copies;
  }
  for (const Tensor& tensor : *member.inputs) {
    copies.push_back(tensor.clone());
  }
  return copies;
}

void apply_all_to_all(std::span<const OpTensors> members) {
  std::vector<TensorList> copies;
  std::vector<std::vector<View>> sent;
  for (const OpTensors& member : members) {
    copies.push_back(copies_of_input(member));
    OpTensors copy = member;
    copy.input = copies.back().front().storage();
    copy.inputs = member.inputs != nullptr ? &copies.back() : nullptr;
    sent.push_back(outgoing(copy, members.size()));
  }
  std::vector<View> received(members.size());
  for (std::size_t r = 0; r < members.size(); ++r) {
    for (std::size_t s = 0; s < members.size(); ++s) {
      received[s] = sent[s][r];
    }
    assemble(members[r], incoming(members[r], members.size()), received);
  }
}

// Walks through a list of tensors as if they were packed one behind the other, as Gloo packs them.
class ListWalk {
 public:
  explicit ListWalk(const OpTensors& tensors) : list_(*tensors.inputs), factor_(tensors.factor) {}

  // What is left of the current tensor; empty at the end of the list.
  View rest() {
    while (next_ < list_.size() && offset_ == list_[next_].numel()) {
      ++next_;
      offset_ = 0;
    }
    return next_ == list_.size()
               ? View()
               : View{list_[next_].storage(), offset_, list_[next_].numel() - offset_, factor_};
  }
  void pass(std::int64_t count) { offset_ += count; }

 private:
  const TensorList& list_;
  double factor_;
  std::size_t next_ = 0;
  std::int64_t offset_ = 0;
};

// One reduction per tensor of the lists, if all members divide their elements into tensors in the same way.
void apply_coalesced(const Op& op, std::span<const OpTensors> members) {
  std::vector<ListWalk> lists(members.begin(), members.end());
  std::vector<View> sources(members.size());
  for (;;) {
    std::ranges::transform(lists, sources.begin(), &ListWalk::rest);
    const std::int64_t count = std::ranges::min(sources, {}, &View::count).count;
    if (count == 0) {
      return;
    }
    for (std::size_t r = 0; r < sources.size(); ++r) {
      sources[r].count = count;
      lists[r].pass(count);
    }
    const Tensor result = reduced(op, sources);
    for (const View& target : sources) {
      copy(target, whole(result));
    }
  }
}

std::vector<std::int64_t> counts_of(const std::vector<View>& parts) {
  std::vector<std::int64_t> counts;
  for (const View& part : parts) {
    counts.push_back(part.count);
  }
  return counts;
}

}  // namespace

void apply_op(const Op& op, std::span<const OpTensors> members) {
  expects(!members.empty(), "a collective has members");
  const OpRow& row = row_of(op.kind);
  expects(row.family == Family::collective, "messages are applied one by one");
  switch (row.sizes) {
    case Sizes::equal:
      if (row.given == Tensors::several) {
        apply_coalesced(op, members);
      } else if (row.reduces) {
        apply_reduction(op, members);
      } else if (row.given == Tensors::one) {
        apply_broadcast(op, members);
      }
      return;
    case Sizes::gathered:
      return row.root == Root::none ? apply_all_gather(members) : apply_gather(op, members);
    case Sizes::divided:
      return row.root == Root::none ? apply_reduce_scatter(op, members) : apply_scatter(op, members);
    case Sizes::exchanged:
      return apply_all_to_all(members);
  }
}

void apply_message(Storage& target, Storage& source) { copy(whole(&target), whole(&source)); }

namespace {

// Visits every storage that a member reads, or writes, once per run of equal handles.
template <typename Visit>
void for_each_storage(Storage* one, const TensorList* list, Visit&& visit) {
  if (one != nullptr) {
    visit(*one);
  }
  const Storage* before = nullptr;
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    Storage* storage = (*list)[i].storage();
    if (storage != before) {
      visit(*storage);
    }
    before = storage;
  }
}

// True if no member's input is dense and, where results are assembled from the inputs, all inputs hold one value.
bool stays_uniform(const Op& op, std::span<const OpTensors> members) {
  const OpRow& row = row_of(op.kind);
  const bool puts_together =
      row.filled == Tensors::one && (row.sizes == Sizes::gathered || row.sizes == Sizes::exchanged);
  std::optional<Bits> value;
  bool is_uniform = true;
  bool is_equal = true;
  for (const OpTensors& member : members) {
    for_each_storage(member.input, member.inputs, [&](const Storage& storage) {
      is_uniform = is_uniform && storage.form != Storage::Form::dense;
      is_equal = is_equal && value.value_or(storage.value) == storage.value;
      value = storage.value;
    });
  }
  return is_uniform && (is_equal || !puts_together);
}

}  // namespace

std::int64_t dense_bytes(const Op& op, std::span<const OpTensors> members) {
  if (stays_uniform(op, members)) {
    return 0;
  }
  std::int64_t bytes = 0;
  const auto count = [&bytes](const Storage& storage) {
    if (storage.form == Storage::Form::uniform && __builtin_add_overflow(bytes, storage.bytes(), &bytes)) {
      bytes = INT64_MAX;
    }
  };
  for (const OpTensors& member : members) {
    const bool in_place = member.output == nullptr && member.outputs == nullptr;
    for_each_storage(in_place ? member.input : member.output, in_place ? member.inputs : member.outputs,
                     count);
  }
  return bytes;
}

std::vector<std::int64_t> sent_parts(const Op& op, const OpTensors& member, std::size_t members) {
  if (row_of(op.kind).sizes == Sizes::gathered) {
    return std::vector<std::int64_t>(members, member.input->numel);
  }
  return counts_of(outgoing(member, members));
}

std::vector<std::int64_t> expected_parts(const Op& op, const OpTensors& member, std::size_t members) {
  if (row_of(op.kind).sizes == Sizes::divided) {
    return std::vector<std::int64_t>(members, member.output->numel);
  }
  return counts_of(incoming(member, members));
}

bool parts_fit(const Op& op, std::span<const OpTensors> members) { return part_misfits(op, members).empty(); }

std::vector<PartMisfit> part_misfits(const Op& op, std::span<const OpTensors> members) {
  std::vector<PartMisfit> misfits;
  std::vector<std::vector<std::int64_t>> sent;
  for (const OpTensors& member : members) {
    sent.push_back(sent_parts(op, member, members.size()));
  }
  for (std::size_t r = 0; r < members.size(); ++r) {
    const std::vector<std::int64_t> expected = expected_parts(op, members[r], members.size());
    for (std::size_t s = 0; s < members.size(); ++s) {
      if (sent[s][r] != expected[s]) {
        misfits.push_back({static_cast<Rank>(s), static_cast<Rank>(r), sent[s][r], expected[s]});
      }
    }
  }
  return misfits;
}

bool has_uniform_form(OpKind kind) {
  const OpRow& row = row_of(kind);
  return row.family == Family::collective && row.given == Tensors::one && row.sizes == Sizes::equal;
}

void apply_uniform(const Op& op, std::span<const Bits> values, std::span<Storage* const> storages) {
  expects(values.size() == storages.size() && !values.empty(), "every member has a value and a storage");
  constexpr std::size_t prefetch_distance = 8;
  Bits result = 0;
  if (!has_reduce_op(op.kind)) {
    result = values[static_cast<std::size_t>(op.root)];
  } else {
    result = reduce_all(op.reduce, op.dtype, values);
  }
  if (row_of(op.kind).root == Root::destination) {
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
