// The interpreter, the part about collectives: arguments from the frame, then torch's function.

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "scenarios/run/interpreter.h"
#include "scenarios/run/rank_frame.h"
#include "sim/dist/collectives.h"
#include "sim/dist/error.h"
#include "sim/dist/scope.h"

namespace rollcall::scenario {
namespace {

// One call in progress.
class CollectiveRun {
 public:
  CollectiveRun(RankFrame& frame, const Collective& call, Site site)
      : frame_(frame), call_(call), site_(site), group_(frame.group(call.group)) {}

  Work issue() {
    const CollectiveOptions plain{.group = group_, .async_op = call_.async_op};
    const ReduceOptions reducing{.op = call_.reduce, .group = group_, .async_op = call_.async_op};
    switch (call_.kind) {
      case OpKind::all_reduce:
        return all_reduce(tensor(), reducing, site_);
      case OpKind::all_reduce_coalesced:
        break;  // no statement makes one
      case OpKind::broadcast:
        return broadcast(tensor(), root(), plain, site_);
      case OpKind::reduce:
        return reduce(tensor(), root(), reducing, site_);
      case OpKind::all_gather:
        return all_gather(output_list(tensor()), tensor(), plain, site_);
      case OpKind::all_gather_into_tensor:
        return all_gather_into_tensor(output(tensor().numel() * size()), tensor(), plain, site_);
      case OpKind::gather:
        return gather(tensor(), is_root() ? output_list(tensor()) : nothing_, root(), plain, site_);
      case OpKind::scatter:
        return scatter(received(), is_root() ? parts(received()) : nothing_, root(), plain, site_);
      case OpKind::reduce_scatter:
        return reduce_scatter(output(model().numel()), parts(model()), reducing, site_);
      case OpKind::reduce_scatter_tensor:
        return reduce_scatter_tensor(output(tensor().numel() / std::max<std::int64_t>(size(), 1)), tensor(),
                                     reducing, site_);
      case OpKind::all_to_all:
        return all_to_all(output_list(model()), parts(model()), plain, site_);
      case OpKind::all_to_all_single:
        return all_to_all_single(output(tensor().numel()), tensor(),
                                 {.group = group_, .async_op = call_.async_op}, site_);
      case OpKind::barrier:
        return barrier({.group = group_, .async_op = call_.async_op}, site_);
      case OpKind::monitored_barrier:
      case OpKind::send:
      case OpKind::recv:
      case OpKind::new_group:
      case OpKind::split_group:
      case OpKind::destroy_process_group:
      case OpKind::store_get:
      case OpKind::store_wait:
        break;  // statements of their own
    }
    return {};
  }

  // Lists of parts are only lent to the call; the tensors in them may be used again at once.
  void release() {
    if (call_.input_list != no_slot) {
      frame_.lists[call_.input_list].clear();
    }
  }

 private:
  std::int64_t size() const { return group_.is_member() ? group_.size() : 0; }

  // The tensor given, made on first use.
  Tensor& tensor() {
    if (tensor_ == nullptr) {
      const bool is_divided =
          call_.kind == OpKind::reduce_scatter_tensor || call_.kind == OpKind::all_to_all_single;
      tensor_ = &frame_.make(call_.tensor, is_divided ? std::max<std::int64_t>(size(), 1) : 1);
    }
    return *tensor_;
  }

  // The tensor that a scatter fills: its value, if any, is that of the root's parts.
  Tensor& received() {
    if (tensor_ == nullptr) {
      tensor_ = &frame_.shape(call_.tensor);
    }
    return *tensor_;
  }

  // What one part of a list looks like; with parts that differ it holds no value of its own.
  Tensor& model() { return call_.value_has_peer ? received() : tensor(); }

  Rank root() const {
    const std::int64_t rank = frame_.evaluate(call_.root);
    if (rank < 0 || rank >= frame_.scenario().options.world_size) {
      throw ValueError(fmt::format("rank {} is out of range: the world has {} ranks", rank,
                                   frame_.scenario().options.world_size));
    }
    return static_cast<Rank>(rank);
  }
  bool is_root() const { return root() == frame_.rank(); }

  Tensor& output(std::int64_t numel) { return frame_.output(call_.output, numel, model()); }

  TensorList& output_list(const Tensor& like) {
    const bool nobody_reads = frame_.program().list_names[call_.output].empty();
    return frame_.list(call_.output, static_cast<std::size_t>(size()), like, nobody_reads);
  }

  // One tensor per rank of the group, with the values asked for.
  const TensorList& parts(const Tensor& like) {
    const auto count = static_cast<std::size_t>(size());
    if (call_.kind != OpKind::scatter && !call_.value_has_peer) {
      TensorList& list = frame_.lists[call_.input_list];
      list.assign(count, like);
      return list;
    }
    TensorList& list = frame_.list(call_.input_list, count, like, !call_.value_has_peer);
    const Operand value = call_.tensor.value ? call_.tensor.value : Operand::of(1);
    for (std::size_t peer = 0; peer < list.size(); ++peer) {
      frame_.set(builtin::peer, static_cast<std::int64_t>(peer));
      frame_.set_elements(list[peer], value);
    }
    return list;
  }

  RankFrame& frame_;
  const Collective& call_;
  Site site_;
  ProcessGroup group_;
  Tensor* tensor_ = nullptr;
  const TensorList nothing_;
};

}  // namespace

void run_collective(RankFrame& frame, const Collective& call, Site site) {
  std::optional<Scope> scope;
  if (call.label != none) {
    scope.emplace(frame.program().strings[call.label]);
  }
  CollectiveRun run(frame, call, site);
  const Work work = run.issue();
  run.release();
  if (call.work != no_slot) {
    frame.works[call.work] = work;
  }
}

}  // namespace rollcall::scenario
