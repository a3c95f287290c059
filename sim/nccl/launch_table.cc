#include "sim/nccl/launch_table.h"

#include <utility>

#include "sim/base/expects.h"

namespace rollcall::sim {
namespace {

template <typename T>
std::unique_ptr<T> keep(const T*& borrowed) {
  if (borrowed == nullptr) {
    return nullptr;
  }
  auto copy = std::make_unique<T>(*borrowed);
  borrowed = copy.get();
  return copy;
}

template <typename F>
void for_each_beside_input(const OpTensors& tensors, F&& f) {
  if (tensors.output != nullptr) {
    f(*tensors.output);
  }
  for (const TensorList* list : {tensors.inputs, tensors.outputs}) {
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
      if (Storage* storage = (*list)[i].storage()) {
        f(*storage);
      }
    }
  }
}

}  // namespace

LaunchTable::~LaunchTable() {
  for (std::size_t member = 0; member < lanes_.size(); ++member) {
    for (std::int64_t seq = lanes_[member].finished; seq < lanes_[member].launched; ++seq) {
      end_uses(*ring_[index(seq)], static_cast<Rank>(member), place(static_cast<Rank>(member), seq));
    }
  }
}

[[gnu::noinline]] void LaunchTable::keep_own(Row& row, const Op& op) const {
  row.own.resize(lanes_.size());
  auto own = std::make_unique<Own>();
  own->op = op;
  own->inputs = keep(own->op.tensors.inputs);
  own->outputs = keep(own->op.tensors.outputs);
  own->splits = keep(own->op.tensors.splits);
  for_each_beside_input(own->op.tensors, [](Storage& storage) { storage.begin_use(); });
  row.own[static_cast<std::size_t>(op.rank)] = std::move(own);
}

[[gnu::noinline]] void LaunchTable::drop_own(Row& row, Rank member) {
  std::unique_ptr<Own>& own = row.own[static_cast<std::size_t>(member)];
  for_each_beside_input(own->op.tensors, [](Storage& storage) { storage.end_use(); });
  own = nullptr;
}

[[gnu::noinline]] void LaunchTable::retire() {
  while (base_ < end_ && ring_[index(base_)]->finished == static_cast<Rank>(lanes_.size())) {
    ++base_;
  }
}

OpKind LaunchTable::kind_of(Rank member, std::int64_t seq) const {
  const Row& row = *ring_[index(seq)];
  const auto at = static_cast<std::size_t>(member);
  return place(member, seq).is_own ? row.own[at]->op.kind : row.call.kind;
}

Op LaunchTable::op_of(Rank member, std::int64_t seq) const {
  const Row& row = *ring_[index(seq)];
  const Place& own = place(member, seq);
  if (own.is_own) {
    return row.own[static_cast<std::size_t>(member)]->op;
  }
  Op op = row.call;
  op.rank = member;
  op.stream = own.stream;
  op.tensors.input = own.input;
  return op;
}

[[gnu::noinline]] LaunchTable::Row& LaunchTable::open(const Op& op) {
  if (end_ - base_ == static_cast<std::int64_t>(ring_.size())) {
    grow();
  }
  std::unique_ptr<Row>& row = ring_[index(end_++)];
  if (row == nullptr) {
    row = std::make_unique<Row>();
  }
  row->call = op;
  row->call.tensors = {};
  row->plain = !is_special(op);
  row->finished = 0;
  return *row;
}

void LaunchTable::grow() {
  LaunchTable larger(group_, 0);
  larger.ring_.resize(ring_.size() * 2);
  larger.mask_ = larger.ring_.size() - 1;
  larger.places_.resize(lanes_.size() * larger.stride());
  for (std::int64_t seq = base_; seq < end_; ++seq) {
    larger.ring_[larger.index(seq)] = std::move(ring_[index(seq)]);
  }
  for (Rank member = 0; member < static_cast<Rank>(lanes_.size()); ++member) {
    for (std::int64_t seq = lane(member).finished; seq < lane(member).launched; ++seq) {
      larger.place(member, seq) = place(member, seq);
    }
  }
  ring_ = std::move(larger.ring_);
  mask_ = larger.mask_;
  places_ = std::move(larger.places_);
}

}  // namespace rollcall::sim
