#include "scenarios/record/script_calls.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/groups.h"
#include "sim/c10d/p2p.h"
#include "sim/c10d/rank_context.h"

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

// Tensors of these sizes, with elements from `payload` as far as it goes.
TensorList tensors_of(const std::vector<std::int64_t>& counts, Dtype dtype, std::string_view payload) {
  TensorList tensors;
  for (const std::int64_t count : counts) {
    Tensor tensor = Tensor::full({count}, 0, dtype, this_rank().device);
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

// The arguments of one call, under the names of sim/dist.
struct Arguments {
  const ScriptCall& call;
  ProcessGroup group;
  const TensorList& given;
  const TensorList& filled;
  bool async_op = true;  // who waits is for the script to say

  const Tensor& input() const { return first(given); }
  const Tensor& output() const { return first(filled); }
  Rank root() const { return call.root.value_or(0); }
  CollectiveOptions options() const { return {group, async_op}; }
  ReduceOptions reduce() const {
    return {parse_reduce_op(call.reduce_op).value_or(ReduceOp::sum), group, async_op, 1};
  }

 private:
  const Tensor& first(const TensorList& list) const {
    if (list.empty()) {
      throw ValueError(fmt::format("rollcall: {} without a tensor", call.op));
    }
    return list.front();
  }
};

using Issue = Work (*)(const Arguments& a);

struct CallRule {
  std::string_view op;
  Issue issue;
};

Work all_reduce_all(const Arguments& a) {
  return a.given.size() == 1 ? all_reduce(a.input(), a.reduce()) : all_reduce_coalesced(a.given, a.reduce());
}

Work all_to_all_single_of(const Arguments& a) {
  return all_to_all_single(a.output(), a.input(),
                           {a.call.output_splits, a.call.input_splits, a.group, a.async_op});
}

Work send_of(const Arguments& a) { return isend(a.input(), a.call.peer.value_or(-1), {a.group, a.call.tag}); }

Work recv_of(const Arguments& a) { return irecv(a.output(), a.call.peer, {a.group, a.call.tag}); }

Work monitored_barrier_of(const Arguments& a) {
  MonitoredBarrierOptions options{.group = a.group, .timeout = {}, .wait_all_ranks = a.call.wait_all_ranks};
  if (a.call.timeout_s > 0) {
    options.timeout = static_cast<Duration>(std::llround(a.call.timeout_s * 1e9));
  }
  monitored_barrier(options);
  return {};
}

constexpr std::array<CallRule, 17> rules = {{
    {"all_reduce", all_reduce_all},
    {"all_reduce_coalesced", all_reduce_all},
    {"broadcast", [](const Arguments& a) { return broadcast(a.input(), a.root(), a.options()); }},
    {"reduce", [](const Arguments& a) { return reduce(a.input(), a.root(), a.reduce()); }},
    {"all_gather", [](const Arguments& a) { return all_gather(a.filled, a.input(), a.options()); }},
    {"all_gather_into_tensor",
     [](const Arguments& a) { return all_gather_into_tensor(a.output(), a.input(), a.options()); }},
    {"gather", [](const Arguments& a) { return gather(a.input(), a.filled, a.root(), a.options()); }},
    {"scatter", [](const Arguments& a) { return scatter(a.output(), a.given, a.root(), a.options()); }},
    {"reduce_scatter", [](const Arguments& a) { return reduce_scatter(a.output(), a.given, a.reduce()); }},
    {"reduce_scatter_tensor",
     [](const Arguments& a) { return reduce_scatter_tensor(a.output(), a.input(), a.reduce()); }},
    {"all_to_all", [](const Arguments& a) { return all_to_all(a.filled, a.given, a.options()); }},
    {"all_to_all_single", all_to_all_single_of},
    {"barrier",
     [](const Arguments& a) {
       return barrier({a.group, a.async_op, {}});
     }},
    {"send", send_of},
    {"recv", recv_of},
    {"monitored_barrier", monitored_barrier_of},
    {"all_gather_coalesced",
     [](const Arguments& a) -> Work {
       throw NotImplementedError(fmt::format("rollcall: {} is not simulated", a.call.op));
     }},
}};

const CallRule& rule_of(const ScriptCall& call) {
  for (const CallRule& rule : rules) {
    if (rule.op == call.op) {
      return rule;
    }
  }
  throw NotImplementedError(fmt::format("rollcall: {} is not simulated", call.op));
}

Pending with_tensors(const ScriptCall& call, std::string_view payload) {
  Pending pending;
  if (call.dtype.empty()) {
    return pending;
  }
  const Dtype dtype = dtype_of(call);
  pending.given = tensors_of(call.given, dtype, payload);
  const bool is_in_place = call.filled.empty() && call.op != "gather" && call.op != "send";
  pending.filled = is_in_place ? pending.given : tensors_of(call.filled, dtype, {});
  pending.is_receive_from_anybody = call.op == "recv" && !call.peer;
  return pending;
}

}  // namespace

ProcessGroup ScriptCalls::group(std::int64_t number) const {
  if (number == 0) {
    return {};
  }
  const auto known = groups_.find(number);
  return known == groups_.end() ? ProcessGroup::non_member() : known->second;
}

Pending ScriptCalls::issue(const ScriptCall& call, std::string_view payload) {
  Pending pending = with_tensors(call, payload);
  pending.work = rule_of(call).issue({call, group(call.group), pending.given, pending.filled});
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
    if (tensors.empty()) {
      throw ValueError(fmt::format("rollcall: {} without a tensor", call.op));
    }
    messages.push_back({sends ? OpKind::send : OpKind::recv,
                        tensors.front(),
                        call.peer.value_or(-1),
                        {group(call.group), call.tag}});
  }
  const std::vector<Work> works = batch_isend_irecv(messages);
  for (std::size_t i = 0; i < works.size(); ++i) {
    all[i].work = works[i];
  }
  return all;
}

void ScriptCalls::manage(const ScriptCall& call) {
  if (call.op == "destroy_process_group") {
    destroy_process_group(group(call.group));
    return;
  }
  GroupOptions options;
  if (call.timeout_s > 0) {
    options.timeout = static_cast<Duration>(std::llround(call.timeout_s * 1e9));
  }
  groups_[call.group] = new_group(call.ranks, options);
}

std::string ScriptCalls::finish(const Pending& pending) {
  pending.work.wait();
  std::string bytes;
  for (const Tensor& tensor : pending.filled) {
    tensor.settle();  // on nccl, wait() holds up a stream and not the host
    Storage& storage = *tensor.storage();
    bytes.append(reinterpret_cast<const char*>(storage.make_dense()),
                 static_cast<std::size_t>(storage.bytes()));
    storage.collapse_if_uniform();
  }
  return bytes;
}

}  // namespace rollcall::scenario
