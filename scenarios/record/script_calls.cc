#include "scenarios/record/script_calls.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include <fmt/core.h>

#include "sim/base/error.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/groups.h"
#include "sim/c10d/p2p.h"
#include "sim/c10d/rank_context.h"
#include "sim/c10d/scope.h"

namespace rollcall::scenario {
namespace {

using traces::ScriptCall;
using Pending = ScriptCalls::Pending;

Dtype dtype_of(const ScriptCall& call) {
  const std::optional<Dtype> dtype = parse_dtype(call.dtype);
  if (!dtype || is_complex(*dtype)) {
    throw NotImplementedError(
        fmt::format("rollcall: {} of tensors of type {} is not simulated", call.op, call.dtype));
  }
  return *dtype;
}

// The rank's own device, unless the script names another one.
Device device_of(const ScriptCall& call) {
  const Device own = this_rank().device;
  return is_at_home(call) ? own : parse_device(call.device).value_or(own);
}

// Returns tensors of these sizes, with elements from `payload` as far as it reaches. Without shapes, they have one
// dimension.
TensorList tensors_of(const std::vector<std::int64_t>& counts,
                      const std::vector<std::vector<std::int64_t>>& shapes, Dtype dtype, Device device,
                      std::string_view payload) {
  TensorList tensors;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Shape shape = shapes.empty() ? Shape{counts[i]} : Shape(shapes[i]);
    Tensor tensor = Tensor::full(shape, 0, dtype, device);
    const std::size_t bytes = std::min(static_cast<std::size_t>(tensor.storage()->bytes()), payload.size());
    if (bytes > 0) {
      std::memcpy(tensor.storage()->make_dense(), payload.data(), bytes);
      tensor.storage()->collapse_if_uniform();
      payload.remove_prefix(bytes);
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

const Tensor& first_of(const TensorList& list, const ScriptCall& call) {
  if (list.empty()) {
    throw ValueError(fmt::format("rollcall: {} without a tensor", call.op));
  }
  return list.front();
}

// The script decides when to wait: every call is asynchronous.
Work collective_of(OpKind kind, const ScriptCall& call, const ProcessGroup& group, const Pending& tensors) {
  if (works_in_place(kind) && has_reduce_op(kind) && !has_root(kind)) {
    kind = tensors.given.size() == 1 ? OpKind::all_reduce : OpKind::all_reduce_coalesced;
  }
  const OpRow& row = row_of(kind);
  const SplitSizes splits{call.output_splits, call.input_splits};
  CollectiveArguments arguments{
      .inputs = &tensors.given,
      .outputs = &tensors.filled,
      .root = call.root.value_or(0),
      .options = {parse_reduce_op(call.reduce_op).value_or(ReduceOp::sum), group, true, call.factor},
      .splits = &splits};
  const Device device = device_of(call);
  if (!has_tensor(kind) && device != this_rank().device) {
    arguments.device_ids = {&device.index, 1};
  }
  if (row.given == Tensors::one) {
    arguments.input = &first_of(tensors.given, call);
  }
  if (row.filled == Tensors::one) {
    arguments.output = &first_of(tensors.filled, call);
  }
  return call_collective(kind, arguments, line_of(call.site));
}

std::optional<Duration> timeout_of(const ScriptCall& call) {
  return call.timeout_s > 0 ? std::optional(static_cast<Duration>(std::llround(call.timeout_s * 1e9)))
                            : std::nullopt;
}

Work work_of(const ScriptCall& call, const ProcessGroup& group, const Pending& tensors) {
  const std::optional<OpKind> kind = parse_op_kind(call.op);
  if (kind == OpKind::send) {
    return isend(first_of(tensors.given, call), call.peer.value_or(-1), {group, call.tag},
                 line_of(call.site));
  }
  if (kind == OpKind::recv) {
    return irecv(first_of(tensors.filled, call), call.peer, {group, call.tag}, line_of(call.site));
  }
  if (kind == OpKind::monitored_barrier) {
    monitored_barrier({.group = group, .timeout = timeout_of(call), .wait_all_ranks = call.wait_all_ranks},
                      line_of(call.site));
    return {};
  }
  if (kind && row_of(*kind).family == Family::collective) {
    return collective_of(*kind, call, group, tensors);
  }
  throw NotImplementedError(fmt::format("rollcall: {} is not simulated", call.op));
}

Pending with_tensors(const ScriptCall& call, std::string_view payload) {
  Pending pending;
  if (call.dtype.empty()) {
    return pending;
  }
  const Dtype dtype = dtype_of(call);
  const Device device = device_of(call);
  pending.given = tensors_of(call.given, call.given_shapes, dtype, device, payload);
  const bool is_in_place = call.filled.empty() && call.op != "gather" && call.op != "send";
  pending.filled =
      is_in_place ? pending.given : tensors_of(call.filled, call.filled_shapes, dtype, device, {});
  pending.is_receive_from_anybody = call.op == "recv" && !call.peer;
  return pending;
}

// Calls that torch makes for Join pair only with each other, and a rank that has joined makes its calls for others: a
// hook that leaves one out is found, although all calls were paired. (torch/distributed/algorithms/join.py)
class ForJoin {
 public:
  explicit ForJoin(const traces::ScriptSite& site) : shadowing_(site.shadow || is_of_joined(site)) {
    if (is_of_joined(site) || site.reason == "join.notify") {
      scope_.emplace(site.reason, "join.presence");
    }
  }

 private:
  static bool is_of_joined(const traces::ScriptSite& site) {
    return site.reason == "join.count" || site.reason == "join.terminate";
  }

  Shadowing shadowing_;
  std::optional<Scope> scope_;
};

}  // namespace

Site line_of(const traces::ScriptSite& site) {
  return site.line == 0 ? Site{} : Site{site.file.c_str(), static_cast<std::uint32_t>(site.line), 0};
}

bool is_at_home(const ScriptCall& call) {
  const RankContext& self = this_rank();
  return call.device.empty() || traces::is_own_device(call.device, self.backend->name(), self.device.index);
}

ProcessGroup ScriptCalls::group(std::int64_t number) const {
  if (number == 0) {
    return {};
  }
  const auto known = groups_.find(number);
  return known == groups_.end() ? ProcessGroup::non_member() : known->second;
}

Pending ScriptCalls::issue(const ScriptCall& call, std::string_view payload) {
  const ForJoin part(call.site);
  Pending pending = with_tensors(call, payload);
  pending.work = work_of(call, group(call.group), pending);
  return pending;
}

std::vector<Pending> ScriptCalls::issue_batch(const std::vector<const ScriptCall*>& calls,
                                              const std::vector<std::string>& payloads) {
  std::vector<Pending> all;
  std::vector<PointToPoint> messages;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const ScriptCall& call = *calls[i];
    all.push_back(with_tensors(call, payloads[i]));
    const bool sends = call.op == "send";
    const TensorList& tensors = sends ? all.back().given : all.back().filled;
    messages.push_back({sends ? OpKind::send : OpKind::recv,
                        first_of(tensors, call),
                        call.peer.value_or(-1),
                        {group(call.group), call.tag}});
  }
  const std::vector<Work> works = batch_isend_irecv(messages, line_of(calls.front()->site));
  for (std::size_t i = 0; i < works.size(); ++i) {
    all[i].work = works[i];
  }
  return all;
}

void ScriptCalls::manage(const ScriptCall& call) {
  if (call.op == "destroy_process_group") {
    destroy_process_group(group(call.group), line_of(call.site));
    return;
  }
  if (call.op == "split_group") {
    split(call);
    return;
  }
  GroupOptions options;
  options.use_local_synchronization = call.is_local;
  options.is_on_gloo = call.is_on_gloo;
  const BackendTraits& traits = this_rank().backend->traits();
  options.timeout = timeout_of(call);
  if (!options.timeout && traits.raises_timeouts) {
    options.timeout = traits.timeout;  // the job's is only for the world
    options.timeout_is_default = true;
  }
  groups_[call.group] = new_group(call.ranks, options, line_of(call.site));
}

void ScriptCalls::split(const ScriptCall& call) {
  std::vector<RankList> parts;
  for (const std::vector<std::int64_t>& part : call.parts) {
    parts.emplace_back(part.begin(), part.end());
  }
  const SplitOptions options{.parent = group(call.parent), .timeout = timeout_of(call)};
  groups_[call.group] = split_group(parts, options, line_of(call.site));
}

std::string ScriptCalls::finish(const Pending& pending) {
  pending.work.wait();
  std::string bytes;
  for (const Tensor& tensor : pending.filled) {
    if (tensor.device().type == DeviceType::meta) {
      continue;
    }
    tensor.settle();  // on nccl, wait() blocks a stream and not the host
    Storage& storage = *tensor.storage();
    bytes.append(reinterpret_cast<const char*>(storage.make_dense()),
                 static_cast<std::size_t>(storage.bytes()));
    storage.collapse_if_uniform();
  }
  return bytes;
}

}  // namespace rollcall::scenario
