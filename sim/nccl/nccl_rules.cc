#include "sim/nccl/nccl_rules.h"

#include <algorithm>
#include <functional>
#include <map>

#include <fmt/core.h>

#include "sim/c10d/apply.h"
#include "sim/c10d/arguments.h"
#include "sim/match/slot_calls.h"
#include "sim/torch/torch_traits.h"

namespace rollcall::sim {
namespace {

using check::Fate;
using check::GroupMatcher;
using check::Slot;

template <typename Field>
bool agree(const std::vector<Op>& calls, Field&& field) {
  return std::ranges::all_of(
      calls, [&](const auto& value) { return value == std::invoke(field, calls.front()); }, field);
}

// A barrier is an all_reduce of one element (ProcessGroupNCCL::barrier).
bool is_reduced_in_place(const Op& op) { return has_uniform_form(op.kind) || op.kind == OpKind::barrier; }

// Calls with several tensors, or a list of parts, are separate NCCL calls, or are packed first: only calls of the same
// kind are compared there.
bool same_function(const std::vector<Op>& calls) {
  return agree(calls, &Op::kind) || (std::ranges::all_of(calls, is_reduced_in_place) &&
                                     agree(calls, [](const Op& op) { return row_of(op.kind).nccl; }));
}

bool any_meta(const std::vector<Op>& calls) {
  return std::ranges::any_of(calls, [](const Op& op) {
    return op.tensors.input != nullptr && op.tensors.input->form == Storage::Form::meta;
  });
}

class NcclRules final : public BackendRules {
 public:
  explicit NcclRules(const TorchTraits& torch) : torch_(torch) {}

  const BackendTraits& traits() const override { return traits_; }

  bool refuses(const Op& op) const override {
    return (op.device.type != DeviceType::cuda && has_tensor(op.kind)) || nccl_type_error(op, torch_);
  }
  Error refusal(const Op& op, Rank) const override {
    if (op.device.type == DeviceType::cuda) {
      return *nccl_type_error(op, torch_);
    }
    return ValueError("Tensors must be CUDA and dense");
  }

  bool raises_late(const Op&, Rank) const override { return false; }

  bool has_own_order() const override { return false; }
  bool complete(const Op&, Slot&) const override { return false; }

  // Only differences that change a kernel's steps can make it hang: in NCCL's function, the byte count and the root.
  // Other dtypes and reductions pass silently.
  void settle(const GroupMatcher& matcher, Slot& slot) const override {
    const std::vector<Op> calls = calls_of(matcher, slot);
    give_all(slot, calls.size(), Fate::hangs);
    if (any_meta(calls)) {
      return;
    }
    if (agree(calls, &Op::kind) && row_of(calls.front().kind).nccl == NcclFunction::messages) {
      return exchange_what_fits(calls, slot);
    }
    if (!same_function(calls) || !agree(calls, &Op::root) || !same_bytes(calls)) {
      return;
    }
    if (calls.front().uneven) {
      return;  // broadcasts or reduces in one NCCL group, one per part: a part's sizes do not match
    }
    give_all(slot, calls.size(), Fate::completes);
    if (std::ranges::all_of(calls, [](const Op& op) { return is_reduced_in_place(op); })) {
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
  std::size_t bytes_moved(const Op& op) const {
    return has_tensor(op.kind) ? static_cast<std::size_t>(bytes_of(op)) : size_of(nccl_barrier_dtype(torch_));
  }
  bool same_bytes(const std::vector<Op>& calls) const {
    return agree(calls, [this](const Op& op) { return bytes_moved(op); });
  }

  // Messages in one NCCL group: a member completes if each of its parts has the size that the other end expects. The
  // others hang and keep their old output.
  static void exchange_what_fits(const std::vector<Op>& calls, Slot& slot) {
    std::vector<OpTensors> members;
    std::vector<std::vector<std::byte>> before;  // by member: what it receives into
    const bool has_parts = row_of(calls.front().kind).sizes == Sizes::exchanged;
    if (!has_parts || !agree(calls, &Op::dtype)) {
      return;
    }
    for (const Op& op : calls) {
      members.push_back(op.tensors);
      slot.fates[static_cast<std::size_t>(op.rank)] = Fate::completes;
    }
    for (const PartMisfit& misfit : part_misfits(calls.front(), members)) {
      slot.fates[static_cast<std::size_t>(misfit.sender)] = Fate::hangs;
      slot.fates[static_cast<std::size_t>(misfit.receiver)] = Fate::hangs;
    }
    for (const Op& op : calls) {
      std::vector<std::byte>& kept = before.emplace_back();
      for (const Tensor& tensor : filled_tensors(op)) {
        const std::vector<std::byte> bytes = read_bytes(*tensor.storage());
        kept.insert(kept.end(), bytes.begin(), bytes.end());
      }
    }
    apply_op(calls.front(), members);
    for (const Op& op : calls) {
      const auto member = static_cast<std::size_t>(op.rank);
      if (slot.fates[member] == Fate::completes) {
        continue;
      }
      const std::byte* from = before[member].data();
      for (const Tensor& tensor : filled_tensors(op)) {
        const auto bytes = static_cast<std::size_t>(tensor.storage()->bytes());
        write_bytes(*tensor.storage(), from, bytes);
        from += bytes;
      }
    }
  }

  // Which rank reduces which part of a tensor depends on algorithm and channel; here every rank gets the
  // whole tensor reduced its own way. The bits are garbage to some rank in any case.
  void reduce_as_each_sees_it(const std::vector<Op>& calls) const {
    std::vector<std::vector<std::byte>> inputs;
    for (const Op& op : calls) {
      inputs.push_back(has_tensor(op.kind) ? read_bytes(*op.tensors.input)
                                           : std::vector<std::byte>(bytes_moved(op)));  // zeros
    }
    std::map<std::pair<Dtype, ReduceOp>, std::vector<std::vector<std::byte>>> views;
    for (const Op& op : calls) {
      if (!has_tensor(op.kind)) {
        continue;
      }
      const auto [view, is_new] = views.try_emplace({op.dtype, op.reduce});
      if (is_new) {
        view->second = results_as(op, inputs);
      }
      const std::vector<std::byte>& result = view->second[static_cast<std::size_t>(op.rank)];
      write_bytes(*op.tensors.input, result.data(), result.size());
    }
  }

  // The results of all ranks, if all had made the call `op`.
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

  const TorchTraits& torch_;
  const BackendTraits& traits_ = traits_of("nccl");
};

}  // namespace

std::unique_ptr<BackendRules> make_nccl_rules(const TorchTraits& torch) {
  return std::make_unique<NcclRules>(torch);
}

}  // namespace rollcall::sim
