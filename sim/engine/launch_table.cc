#include "sim/engine/launch_table.h"

#include <utility>

#include "sim/dist/expects.h"

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
      end_uses(*ring_[index(seq)], static_cast<Rank>(member));
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
  return row.places[at].is_own ? row.own[at]->op.kind : row.call.kind;
}

Op LaunchTable::op_of(Rank member, std::int64_t seq) const {
  const Row& row = *ring_[index(seq)];
  const auto at = static_cast<std::size_t>(member);
  if (row.places[at].is_own) {
    return row.own[at]->op;
  }
  Op op = row.call;
  op.rank = member;
  op.stream = row.places[at].stream;
  op.tensors.input = row.places[at].input;
  return op;
}

[[gnu::noinline]] LaunchTable::Row& LaunchTable::open(const Op& op) {
  if (end_ - base_ == static_cast<std::int64_t>(ring_.size())) {
    grow();
  }
  std::unique_ptr<Row>& place = ring_[index(end_)];
  if (place == nullptr) {
    place = std::make_unique<Row>();
    place->places = std::make_unique<Place[]>(lanes_.size());
  }
  ++end_;
  place->call = op;
  place->call.tensors = {};
  place->finished = 0;
  return *place;
}

void LaunchTable::grow() {
  std::vector<std::unique_ptr<Row>> larger(ring_.size() * 2);
  for (std::int64_t seq = base_; seq < end_; ++seq) {
    larger[static_cast<std::size_t>(seq) & (larger.size() - 1)] = std::move(ring_[index(seq)]);
  }
  ring_ = std::move(larger);
  mask_ = ring_.size() - 1;
}

}  // namespace rollcall::sim
