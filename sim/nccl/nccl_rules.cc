#include "sim/nccl/nccl_rules.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "sim/c10d/apply.h"
#include "sim/match/slot_calls.h"

namespace rollcall::sim {
namespace {

using check::Fate;
using check::GroupMatcher;
using check::Slot;

template <typename Field>
bool agree(const std::vector<Op>& calls, Field&& field) {
  return std::ranges::all_of(calls, [&](const Op& op) { return field(op) == field(calls.front()); });
}

bool same_kind(const std::vector<Op>& calls) {
  return agree(calls, [](const Op& op) { return op.kind; });
}
bool same_root(const std::vector<Op>& calls) {
  return agree(calls, [](const Op& op) { return op.root; });
}
bool same_bytes(const std::vector<Op>& calls) { return agree(calls, bytes_of); }

bool any_meta(const std::vector<Op>& calls) {
  return std::ranges::any_of(calls, [](const Op& op) {
    return op.tensors.input != nullptr && op.tensors.input->form == Storage::Form::meta;
  });
}

class NcclRules final : public BackendRules {
 public:
  const BackendTraits& traits() const override { return traits_of("nccl"); }

  bool refuses(const Op& op) const override {
    return (op.device.type != DeviceType::cuda && has_tensor(op.kind)) || !has_type(op) || !reduces(op);
  }
  Error refusal(const Op& op, Rank) const override {
    if (op.device.type == DeviceType::cuda && !has_type(op)) {
      return TypeError(fmt::format("Input tensor data type is not supported for NCCL process group: {}",
                                   scalar_type_name(op.dtype)));
    }
    if (op.reduce == ReduceOp::premul_sum && op.device.type == DeviceType::cuda) {
      return TypeError("PreMulSum Data type must be half, float, bfloat16 or double");
    }
    if (op.device.type == DeviceType::cuda) {
      // getNcclReduceOp, as of torch 2.1.
      if (op.reduce == ReduceOp::avg) {
        return TypeError("Cannot use ReduceOp.AVG with boolean inputs");
      }
      return ValueError(fmt::format("Cannot use ReduceOp.{} with NCCL", to_string(op.reduce)));
    }
    return ValueError("Tensors must be CUDA and dense");
  }

  bool raises_late(const Op&, Rank) const override { return false; }

  bool has_own_order() const override { return false; }
  bool complete(const Op&, Slot&) const override { return false; }

  // Only what a kernel's steps depend on can make it hang: the kind, the byte count and the root. Dtype
  // and reduction pass silently.
  void settle(const GroupMatcher& matcher, Slot& slot) const override {
    const std::vector<Op> calls = calls_of(matcher, slot);
    give_all(slot, calls.size(), Fate::hangs);
    if (!same_kind(calls) || !same_root(calls) || !same_bytes(calls) || any_meta(calls)) {
      return;
    }
    if (calls.front().uneven) {
      return;  // parts of different sizes travel as sends and receives, which must fit each other
    }
    give_all(slot, calls.size(), Fate::completes);
    if (has_uniform_form(calls.front().kind)) {
      reduce_as_each_sees_it(calls);
    }
  }

  std::pair<Fate, Fate> settle(const Op& send, const Op& receive) const override {
    if (bytes_of(send) != bytes_of(receive)) {
      return {Fate::hangs, Fate::hangs};
    }
    copy_front(send, receive);
    return {Fate::completes, Fate::completes};
  }

  std::string timeout_text(Duration timeout, bool) const override {
    return fmt::format(
        "Watchdog caught collective operation timeout: the operation ran for {} milliseconds before timing "
        "out",
        timeout / millisecond);
  }
  std::string wait_timeout_text(Duration timeout) const override {  // WorkNCCL::synchronizeInternal
    return fmt::format("Work WorkNCCL(Timeout(ms)={}) timed out in blocking wait.", timeout / millisecond);
  }
  std::string lost_peer_text() const override { return {}; }

 private:
  // torch's table of NCCL types has neither (NCCLUtils.cpp, ncclDataType).
  static bool has_type(const Op& op) {
    return !has_tensor(op.kind) || (op.dtype != Dtype::int16 && !is_complex(op.dtype));
  }

  // NCCL has no bitwise reductions, and no average of bools.
  static bool reduces(const Op& op) {
    const bool is_bitwise =
        op.reduce == ReduceOp::band || op.reduce == ReduceOp::bor || op.reduce == ReduceOp::bxor;
    const bool averages_bools = op.reduce == ReduceOp::avg && op.dtype == Dtype::boolean;
    const bool scales_integers = op.reduce == ReduceOp::premul_sum && !is_floating(op.dtype);
    return !has_reduce_op(op.kind) || !(is_bitwise || averages_bools || scales_integers);
  }

  // Which part of a tensor is reduced by whom depends on algorithm and channel; here every rank sees the
  // whole reduced its own way. The bits are garbage to somebody in any case.
  static void reduce_as_each_sees_it(const std::vector<Op>& calls) {
    std::vector<std::vector<std::byte>> inputs;
    for (const Op& op : calls) {
      inputs.push_back(read_bytes(*op.tensors.input));
    }
    std::map<std::pair<Dtype, ReduceOp>, std::vector<std::vector<std::byte>>> views;
    for (const Op& op : calls) {
      const auto [view, is_new] = views.try_emplace({op.dtype, op.reduce});
      if (is_new) {
        view->second = results_as(op, inputs);
      }
      const std::vector<std::byte>& result = view->second[static_cast<std::size_t>(op.rank)];
      write_bytes(*op.tensors.input, result.data(), result.size());
    }
  }

  // Everyone's result, if everyone had made the call `op`.
  static std::vector<std::vector<std::byte>> results_as(const Op& op,
                                                        const std::vector<std::vector<std::byte>>& inputs) {
    TensorList copies;
    std::vector<OpTensors> members;
    for (const std::vector<std::byte>& input : inputs) {
      copies.push_back(Tensor::zeros({op.numel}, op.dtype));
      write_bytes(*copies.back().storage(), input.data(), input.size());
      members.emplace_back(copies.back().storage(), op.tensors.factor);
    }
    apply_op(op, members);
    std::vector<std::vector<std::byte>> results;
    for (const Tensor& copy : copies) {
      results.push_back(read_bytes(*copy.storage()));
    }
    return results;
  }
};

}  // namespace

std::unique_ptr<BackendRules> make_nccl_rules(const TorchTraits&) { return std::make_unique<NcclRules>(); }

}  // namespace rollcall::sim
