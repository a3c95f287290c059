// The interpreter, the part about collectives: arguments from the frame, then torch's function.

#include <algorithm>
#include <numeric>
#include <optional>

#include "scenarios/program/names.h"
#include "scenarios/run/interpreter.h"
#include "scenarios/run/rank_frame.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/rank_context.h"
#include "sim/c10d/stream.h"
#include "sim/train/coalescing.h"

namespace rollcall::scenario {
namespace {

const TensorList nothing;  // where only the root gives a list

// One call in progress.
class CollectiveRun {
 public:
  CollectiveRun(RankFrame& frame, const Collective& call, Site site, bool async)
      : frame_(frame),
        call_(call),
        row_(row_of(call.kind)),
        site_(site),
        async_(async),
        group_(frame.group(call.group)) {
    if (frame.has_uses()) [[unlikely]] {
      touch_tensors();
    }
  }

  Work issue() {
    const double times = factor();
    CollectiveArguments arguments{
        .options = {.op = call_.reduce, .group = group_, .async_op = async_, .factor = times}};
    if (row_.given == Tensors::none) {
      const std::vector<std::int16_t> devices = device_ids();
      arguments.device_ids = devices;
      return call_collective(call_.kind, arguments, site_);
    }
    bool has_whole = true;  // on this rank: the list that is cut up, or the place for all results
    if (row_.root != Root::none) {
      arguments.root = root();
      has_whole = arguments.root == frame_.rank();
    }
    std::optional<SplitSizes> splits;
    if (call_.splits != none) {
      arguments.splits = &splits.emplace(split_sizes());
      tensor_ = &frame_.make(call_.tensor, sum(splits->input));
    }
    if (row_.given == Tensors::one) {
      arguments.input = call_.functional && works_in_place(call_.kind) ? &copied() : &tensor();
    } else {
      arguments.inputs = has_whole ? &parts(is_filled() ? received() : model()) : &nothing;
    }
    if (is_filled()) {
      arguments.output = &received();
    } else if (row_.filled == Tensors::one && has_whole) {
      arguments.output = &output(call_.splits == none ? output_numel() : sum(splits->output));
    } else if (fills_list(call_.kind)) {
      arguments.outputs = has_whole ? &output_list(model()) : &nothing;
    }
    return call_collective(call_.kind, arguments, site_);
  }

  // The call inside a _coalescing_manager.
  void add_to(CoalescingManager& manager) {
    if (call_.kind == OpKind::all_reduce) {
      manager.all_reduce(tensor(), call_.reduce);
    } else if (call_.kind == OpKind::all_gather_into_tensor) {
      manager.all_gather_into_tensor(output(output_numel()), tensor());
    } else {
      manager.reduce_scatter_tensor(output(output_numel()), tensor(), call_.reduce);
    }
  }

  void count() {
    if (group_.is_member()) {
      frame_.count_call(group_);
    }
  }

  // Notes the named tensors that the call works on until its handle is waited for, or `is_awaited`.
  void use_tensors(const Work& work, bool is_awaited = false) {
    if (work.is_nothing() || !has_tensor(call_.kind)) {
      return;
    }
    const Tensor& argument = frame_.tensors[call_.tensor.slot];
    frame_.use(with_work(use_of_tensor(), work, argument), is_awaited);
    if (call_.output != no_slot) {
      frame_.use(with_work(use_of_output(), work, argument), is_awaited);
    }
  }

  // Lists of parts are only lent to the call; the tensors in them may be reused immediately.
  void release() {
    if (call_.input_list != no_slot) {
      frame_.lists[call_.input_list].clear();
    }
  }

 private:
  // Reports tensors that another call may still work on.
  [[gnu::noinline]] void touch_tensors() {
    if (!has_tensor(call_.kind) || !group_.is_member()) {
      return;
    }
    if (!call_.tensor.scratch && call_.tensor.value) {
      frame_.touch({call_.tensor.slot}, Observation::Access::write, site_);
    } else {
      frame_.touch(call_.functional ? read_now() : use_of_tensor());
    }
    if (call_.output != no_slot && !call_.functional) {
      frame_.touch(use_of_output());
    }
  }

  bool writes_tensor() const {
    return call_.output == no_slot && !(call_.kind == OpKind::broadcast && is_root());  // in place
  }

  TensorUse use_of_tensor() const {
    TensorUse use{.tensor = {call_.tensor.slot}, .writes = writes_tensor(), .work = call_.work};
    use.op.kind = call_.kind;
    use.op.reduce = call_.reduce;
    use.op.scope = this_rank().scope;
    use.op.site = site_;
    use.queue = frame_.queue_of(group_);
    return use;
  }

  TensorUse use_of_output() const {
    TensorUse use = use_of_tensor();
    use.tensor = {call_.output, fills_list(call_.kind)};
    use.writes = true;
    return use;
  }

  // A functional collective copies its input on the current stream.
  TensorUse read_now() const {
    TensorUse use = use_of_tensor();
    use.writes = false;
    use.queue.reset();
    return use;
  }

  std::vector<std::int16_t> device_ids() const {
    if (!call_.tensor.device) {
      return {};
    }
    return {call_.tensor.device->resolve(frame_.rank(), frame_.local_rank()).index};
  }

  // True if the call fills the statement's tensor, which it does if only the root gives tensors.
  bool is_filled() const { return row_.given == Tensors::per_member_on_root; }

  SplitSizes split_sizes() {
    SplitSizes sizes;
    const Splits& splits = frame_.program().splits[call_.splits];
    for (const Operand& part : splits.output) {
      sizes.output.push_back(frame_.evaluate(part));
    }
    for (const Operand& part : splits.input) {
      sizes.input.push_back(frame_.evaluate(part));
    }
    divide_equally(sizes.output, sizes.input);
    divide_equally(sizes.input, sizes.output);
    return sizes;
  }

  // Sizes that the statement leaves out are equal.
  void divide_equally(std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& others) const {
    if (sizes.empty() && size() > 0) {
      sizes.assign(static_cast<std::size_t>(size()), sum(others) / size());
    }
  }

  static std::int64_t sum(const std::vector<std::int64_t>& parts) {
    return std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
  }

  // The number of elements of the one tensor that holds the result.
  std::int64_t output_numel() {
    const std::int64_t numel = model().numel();
    if (row_.sizes == Sizes::gathered) {
      return numel * size();
    }
    const bool is_divided = row_.sizes == Sizes::divided && !gives_list(call_.kind);
    return is_divided ? numel / std::max<std::int64_t>(size(), 1) : numel;
  }

  std::int64_t size() const { return group_.is_member() ? group_.size() : 0; }

  // The given tensor, made at first use.
  Tensor& tensor() {
    if (tensor_ == nullptr) {
      const Sizes sizes = row_.sizes;
      const bool is_divided =
          !gives_list(call_.kind) && (sizes == Sizes::divided || sizes == Sizes::exchanged);
      tensor_ = &frame_.make(call_.tensor, is_divided ? std::max<std::int64_t>(size(), 1) : 1);
      if (has_reduce_op(call_.kind) && !call_.tensor.scratch && tensor_->numel() > 0 && !tensor_->is_meta()) {
        frame_.contribute(call_.tensor.slot, group_, tensor_->at(0));
      }
    }
    return *tensor_;
  }

  // The copy that a functional collective works on in place of its input.
  Tensor& copied() {
    Tensor& copy = frame_.output(call_.output, tensor().numel(), tensor());
    copy = tensor().clone();
    return copy;
  }

  double factor() const {
    if (call_.factor.kind == Operand::Kind::real) {
      return call_.factor.real;
    }
    return call_.factor ? static_cast<double>(frame_.evaluate(call_.factor)) : 1;
  }

  // The tensor that a scatter fills: its value, if any, is for the root's parts.
  Tensor& received() {
    if (tensor_ == nullptr) {
      tensor_ = &frame_.shape(call_.tensor);
    }
    return *tensor_;
  }

  // A tensor like one part of a list; if parts differ, it has no value of its own.
  Tensor& model() { return call_.value_has_peer ? received() : tensor(); }

  Rank root() const { return frame_.rank_of(call_.root); }
  bool is_root() const { return root() == frame_.rank(); }

  Tensor& output(std::int64_t numel) { return frame_.output(call_.output, numel, model()); }

  TensorList& output_list(const Tensor& like) {
    const bool nobody_reads = frame_.program().list_names[call_.output].empty();
    return frame_.list(call_.output, static_cast<std::size_t>(size()), like, nobody_reads);
  }

  // One tensor per rank of the group, with the requested values.
  const TensorList& parts(const Tensor& like) {
    const auto count = static_cast<std::size_t>(size());
    if (!is_filled() && !call_.value_has_peer) {
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
  const OpRow& row_;
  Site site_;
  bool async_;
  ProcessGroup group_;
  Tensor* tensor_ = nullptr;
};

}  // namespace

void run_collective(RankFrame& frame, const Collective& call, Site site, std::vector<Work>* unfinished) {
  const LabelScope scope(frame, call.label);
  const NamedStreamScope stream(frame, call.stream);
  // In a barrier, the host waits on nccl, too.
  const bool blocks = frame.calls_block() || call.kind == OpKind::barrier;
  const bool defers = unfinished != nullptr && !call.async_op && blocks;
  const bool orders_stream = frame.has_streams() && !call.async_op && !call.functional && !blocks;
  CollectiveRun run(frame, call, site, call.async_op || call.functional || defers || orders_stream);
  const Work work = run.issue();
  run.count();
  run.release();
  if (call.functional) {
    frame.finish_at_use(call.output, work);
    return;
  }
  if (orders_stream) {
    work.wait();
    run.use_tensors(work, true);
    return;
  }
  if (!call.async_op && !defers) {
    block_host(frame);
  }
  if (call.kind == OpKind::barrier && !call.async_op) {
    frame.wait_on_host();
  }
  if (defers) {
    unfinished->push_back(work);
  } else if (call.async_op) {
    frame.keep_work(call.work, work);
    run.use_tensors(work);
  }
}

void run_coalesced(RankFrame& frame, const CoalescedCalls& calls, Site site) {
  const LabelScope scope(frame, calls.label);
  CoalescingManager manager({.group = frame.group(calls.group), .async_ops = calls.async_ops});
  std::vector<CollectiveRun> runs;
  runs.reserve(calls.count);
  for (std::uint32_t i = 0; i < calls.count; ++i) {
    runs.emplace_back(frame, frame.program().collectives[calls.first + i], site, calls.async_ops);
    runs.back().add_to(manager);
  }
  manager.end(site);
  if (!runs.empty()) {
    runs.front().count();
  }
  if (!calls.async_ops) {
    block_host(frame);
    return;
  }
  for (CollectiveRun& run : runs) {
    run.use_tensors(manager.work());
  }
  frame.keep_coalesced(calls.work, std::move(manager));
}

}  // namespace rollcall::scenario
