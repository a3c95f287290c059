#include "sim/gloo/gloo_call.h"

#include <algorithm>

#include "sim/base/expects.h"
#include "sim/c10d/apply.h"
#include "sim/match/slot_calls.h"

namespace rollcall::sim::gloo {
namespace {

Parts in_bytes(const std::vector<std::int64_t>& elements, Dtype dtype) {
  Parts parts;
  for (const std::int64_t count : elements) {
    parts.add(static_cast<std::size_t>(count) * size_of(dtype));
  }
  return parts;
}

// gloo/alltoall.cc splits bytes, regardless of where an element begins.
Parts equal_parts(std::size_t bytes, std::size_t ranks) {
  Parts parts;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    parts.add(bytes / ranks);
  }
  return parts;
}

}  // namespace

Call::Call(const Op& op, std::size_t ranks)
    : op_(op),
      seat_{.rank = static_cast<std::size_t>(op.rank), .ranks = ranks},
      root_(static_cast<std::size_t>(std::max<Rank>(op.root, 0))),
      bytes_(static_cast<std::size_t>(bytes_of(op))) {
  lay_out();
}

void Call::lay_out() {
  const OpTensors& tensors = op_.tensors;
  const OpRow& row = row_of(op_.kind);
  expects(row.gloo != GlooFunction::none, "what Gloo does not support is refused before");
  switch (row.sizes) {
    case Sizes::equal:
      for (const Tensor& tensor : filled_tensors(op_)) {
        add(tensor.storage(), Use::both, memory_bytes_);
      }
      return;
    case Sizes::gathered:
      if (row.root != Root::none && !is_root()) {
        add(tensors.input, Use::read, 0);
        return;
      }
      add(tensors.input, Use::read, seat_.rank * bytes_);
      memory_bytes_ = bytes_ * seat_.ranks;
      if (tensors.outputs != nullptr) {
        add_blocks(*tensors.outputs, Use::write);
      } else {
        add(tensors.output, Use::write, 0);
      }
      return;
    case Sizes::divided:
      if (row.root == Root::none) {  // every rank gets the whole result and keeps a part
        lay_out_reduced();
        return;
      }
      if (!is_root()) {
        add(tensors.output, Use::both, 0);
        return;
      }
      memory_bytes_ = bytes_ * seat_.ranks;
      add_blocks(*tensors.inputs, Use::read);
      add(tensors.output, Use::write, root_ * bytes_);
      return;
    case Sizes::exchanged:
      add_parts();
      return;
  }
}

void Call::lay_out_reduced() {
  const OpTensors& tensors = op_.tensors;
  if (tensors.inputs == nullptr) {
    add(tensors.input, Use::read, 0);
  }
  for (std::size_t i = 0; tensors.inputs != nullptr && i < tensors.inputs->size(); ++i) {
    add((*tensors.inputs)[i].storage(), Use::read, memory_bytes_);
  }
  add(tensors.output, Use::write, seat_.rank * static_cast<std::size_t>(tensors.output->bytes()));
}

void Call::add(Storage* tensor, Use use, std::size_t offset) {
  const auto length = static_cast<std::size_t>(tensor->bytes());
  pieces_.push_back({tensor, use, offset, 0, length});
  memory_bytes_ = std::max(memory_bytes_, offset + length);
}

void Call::add_blocks(const TensorList& tensors, Use use) {
  for (std::size_t rank = 0; rank < tensors.size(); ++rank) {
    add(tensors[rank].storage(), use, rank * bytes_);
  }
}

void Call::add_parts() {
  if (op_.tensors.inputs != nullptr) {
    add_listed_parts();
    return;
  }
  if (op_.tensors.splits != nullptr) {
    output_ = in_bytes(expected_parts(op_, op_.tensors, seat_.ranks), op_.dtype);
    input_ = in_bytes(sent_parts(op_, op_.tensors, seat_.ranks), op_.dtype);
  } else {
    output_ = input_ = equal_parts(static_cast<std::size_t>(op_.tensors.input->bytes()), seat_.ranks);
  }
  add(op_.tensors.output, Use::both, 0);
  add(op_.tensors.input, Use::read, output_.total);
  const std::size_t own = std::min(input_.lengths[seat_.rank], output_.lengths[seat_.rank]);
  pieces_.push_back(
      {op_.tensors.input, Use::read, output_.offsets[seat_.rank], input_.offsets[seat_.rank], own});
}

// torch concatenates lists.
void Call::add_listed_parts() {
  for (const Tensor& tensor : *op_.tensors.outputs) {
    add(tensor.storage(), Use::both, memory_bytes_);
    output_.add(static_cast<std::size_t>(tensor.storage()->bytes()));
  }
  for (const Tensor& tensor : *op_.tensors.inputs) {
    add(tensor.storage(), Use::read, memory_bytes_);
    input_.add(static_cast<std::size_t>(tensor.storage()->bytes()));
  }
  Storage* own = (*op_.tensors.inputs)[seat_.rank].storage();
  const std::size_t length = std::min(input_.lengths[seat_.rank], output_.lengths[seat_.rank]);
  pieces_.push_back({own, Use::read, output_.offsets[seat_.rank], 0, length});
}

std::size_t Call::step_count() const {
  switch (row_of(op_.kind).gloo) {
    case GlooFunction::all_reduce:
    case GlooFunction::reduce:  // also counts the empty segments, which the loop visits
      return 4 * seat_.ranks + 8 * std::min(2 * seat_.ranks, static_cast<std::size_t>(op_.numel));
    case GlooFunction::all_gather:
    case GlooFunction::all_to_all:
      return 8 * seat_.ranks;
    case GlooFunction::gather:
    case GlooFunction::scatter:
      return is_root() ? 2 * seat_.ranks : 2;
    case GlooFunction::monitored_barrier:
      return 4 * seat_.ranks;
    case GlooFunction::broadcast:
    case GlooFunction::barrier:
      return 4 * 64;
    case GlooFunction::none:
      break;
  }
  return 0;
}

Steps Call::steps() const {
  switch (row_of(op_.kind).gloo) {
    case GlooFunction::all_reduce:
      return all_reduce_steps(seat_, bytes_, size_of(op_.dtype));
    case GlooFunction::reduce:
      return reduce_steps(seat_, root_, bytes_, size_of(op_.dtype));
    case GlooFunction::broadcast:
      return broadcast_steps(seat_, root_, bytes_);
    case GlooFunction::all_gather:
      return all_gather_steps(seat_, bytes_);
    case GlooFunction::gather:
      return gather_steps(seat_, root_, bytes_);
    case GlooFunction::scatter:
      return scatter_steps(seat_, root_, bytes_);
    case GlooFunction::all_to_all:
      return all_to_all_steps(seat_, output_, input_);
    case GlooFunction::barrier:
      return barrier_steps(seat_);
    case GlooFunction::monitored_barrier:
      return monitored_barrier_steps(seat_);
    case GlooFunction::none:
      break;
  }
  return {};
}

// A meta tensor's bytes count as zeros.
Member Call::member() const {
  Member member{.function = row_of(op_.kind).gloo,
                .dtype = op_.dtype,
                .reduce = op_.reduce,
                .memory = {},
                .steps = steps()};
  member.memory.resize(memory_bytes_);
  for (const Piece& piece : pieces_) {
    if (piece.use != Use::write && piece.tensor->form != Storage::Form::meta) {
      const std::byte* from = piece.tensor->make_dense() + piece.start;
      std::copy_n(from, piece.length, member.memory.begin() + static_cast<std::ptrdiff_t>(piece.offset));
    }
  }
  return member;
}

void Call::keep(const std::vector<std::byte>& memory) const {
  for (const Piece& piece : pieces_) {
    if (piece.use != Use::read && piece.tensor->form != Storage::Form::meta) {
      write_bytes(*piece.tensor, memory.data() + piece.offset, piece.length);
    }
  }
}

}  // namespace rollcall::sim::gloo
