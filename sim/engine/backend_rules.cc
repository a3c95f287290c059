#include "sim/engine/backend_rules.h"

#include <algorithm>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "sim/dist/apply.h"
#include "sim/dist/expects.h"
#include "sim/engine/gloo_ring.h"

namespace rollcall::sim {
namespace {

using check::Fate;
using check::GroupMatcher;
using check::Slot;

std::vector<Op> calls_of(const GroupMatcher& matcher, const Slot& slot) {
  std::vector<Op> calls;
  for (Rank rank = 0; rank < matcher.size(); ++rank) {
    calls.push_back(matcher.op_of(slot, rank));
  }
  return calls;
}

// The c10d operator behind a torch.distributed function, as dispatcher errors name it.
std::string c10d_name(OpKind kind) {
  std::string name(to_string(kind));
  std::erase(name, '_');
  return name + "_";
}

void give_all(Slot& slot, std::size_t members, Fate fate) {
  slot.fates.assign(members, fate);
  slot.failures.assign(members, std::string());
}

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
std::int64_t bytes_of(const Op& op) { return op.numel * static_cast<std::int64_t>(size_of(op.dtype)); }
bool same_bytes(const std::vector<Op>& calls) { return agree(calls, bytes_of); }

bool any_meta(const std::vector<Op>& calls) {
  return std::ranges::any_of(calls, [](const Op& op) {
    return op.tensors.input != nullptr && op.tensors.input->form == Storage::Form::meta;
  });
}

void write_bytes(Storage& storage, const std::vector<std::byte>& bytes) {
  std::memcpy(storage.make_dense(), bytes.data(),
              std::min(bytes.size(), static_cast<std::size_t>(storage.bytes())));
  storage.collapse_if_uniform();
}

std::vector<std::byte> read_bytes(Storage& storage) {
  const std::byte* bytes = storage.make_dense();
  return {bytes, bytes + storage.bytes()};
}

// Beyond this size a ring is not replayed byte by byte; such tensors only get their fates.
constexpr std::int64_t largest_replayed_bytes = 16 * 1024 * 1024;

class GlooRules final : public BackendRules {
 public:
  std::string_view name() const override { return "gloo"; }
  bool needs_cuda() const override { return false; }

  bool refuses(const Op& op) const override {
    const bool on_meta = op.device.type == DeviceType::meta && has_tensor(op.kind);
    return on_meta || (has_reduce_op(op.kind) && (op.reduce == ReduceOp::avg || !reduces(op.dtype)));
  }

  Error refusal(const Op& op) const override {
    if (op.device.type == DeviceType::meta) {
      return NotImplementedError(fmt::format(
          "Could not run 'c10d::{}' with arguments from the 'AutogradMeta' backend.", c10d_name(op.kind)));
    }
    return RuntimeError(op.reduce == ReduceOp::avg ? "Cannot use ReduceOp.AVG with Gloo"
                                                   : "Invalid scalar type");
  }

  void settle(const GroupMatcher& matcher, Slot& slot) const override {
    const std::vector<Op> calls = calls_of(matcher, slot);
    give_all(slot, calls.size(), Fate::hangs);
    if (!same_kind(calls) || any_meta(calls) || calls.size() < 2) {
      return;  // different kinds never exchange data
    }
    switch (calls.front().kind) {
      case OpKind::all_reduce:
        return settle_all_reduce(calls, slot);
      case OpKind::broadcast:
        return settle_broadcast(calls, slot);
      case OpKind::all_gather:
        return settle_all_gather(calls, slot);
      case OpKind::reduce:
      case OpKind::all_gather_into_tensor:
      case OpKind::gather:
      case OpKind::scatter:
      case OpKind::reduce_scatter:
      case OpKind::reduce_scatter_tensor:
      case OpKind::all_to_all:
      case OpKind::all_to_all_single:
      case OpKind::barrier:
        return;  // members wait for messages that never have the right length or sender
    }
  }

  std::string timeout_text(Duration timeout) const override {
    return fmt::format(
        "[./gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting {}ms for recv operation to complete",
        timeout / millisecond);
  }
  std::string lost_peer_text() const override {
    return "[./gloo/transport/tcp/pair.cc:598] Connection closed by peer";
  }

 private:
  static bool reduces(Dtype dtype) {
    return dtype != Dtype::bfloat16 && dtype != Dtype::boolean && dtype != Dtype::int16;
  }

  static void settle_all_reduce(const std::vector<Op>& calls, Slot& slot) {
    std::vector<RingMember> members;
    for (const Op& op : calls) {
      if (bytes_of(op) > largest_replayed_bytes) {
        return;
      }
      members.push_back({read_bytes(*op.tensors.input), op.dtype, op.reduce});
    }
    const std::vector<RingOutcome> outcomes = replay_gloo_ring(members);
    for (std::size_t rank = 0; rank < calls.size(); ++rank) {
      slot.fates[rank] = outcomes[rank].fate;
      slot.failures[rank] = outcomes[rank].failure;
      if (outcomes[rank].fate == Fate::completes) {
        write_bytes(*calls[rank].tensors.input, members[rank].buffer);
      }
    }
  }

  // Blocks travel round a ring from the left, each in two halves of the *sender's* size. A rank whose left
  // neighbour has more than itself aborts on the first half; whoever still needs a block that would have
  // come through it waits.
  static void settle_all_gather(const std::vector<Op>& calls, Slot& slot) {
    const std::size_t ranks = calls.size();
    const auto left_of = [ranks](std::size_t rank) { return (rank + ranks - 1) % ranks; };
    const auto aborts = [&](std::size_t rank) {
      return bytes_of(calls[left_of(rank)]) > bytes_of(calls[rank]);
    };
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (aborts(rank)) {
        slot.fates[rank] = Fate::crashes;
        slot.failures[rank] = gloo_overflow_text(static_cast<std::size_t>(bytes_of(calls[left_of(rank)]) / 2),
                                                 static_cast<std::size_t>(bytes_of(calls[rank]) / 2));
        continue;
      }
      std::size_t blocks = 1;  // that the left neighbour can send: its own, and what reached it
      for (std::size_t left = left_of(rank); blocks < ranks - 1 && !aborts(left); left = left_of(left)) {
        ++blocks;
      }
      if (blocks == ranks - 1) {
        slot.fates[rank] = Fate::completes;
        gather_short_blocks(calls, rank);
      }
    }
  }

  // What a rank that completes finds: of a shorter block, each half lands at the start of its own half.
  static void gather_short_blocks(const std::vector<Op>& calls, std::size_t rank) {
    for (std::size_t from = 0; from < calls.size(); ++from) {
      const std::vector<std::byte> block = read_bytes(*calls[from].tensors.input);
      Storage& output = *(*calls[rank].tensors.outputs)[from].storage();
      std::vector<std::byte> bytes = read_bytes(output);
      const std::size_t half = block.size() / 2;
      std::copy_n(block.begin(), half, bytes.begin());
      std::copy(block.begin() + static_cast<std::ptrdiff_t>(half), block.end(),
                bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2));
      write_bytes(output, bytes);
    }
  }

  // The root's bytes as they are: a receiver with less room aborts, one with more keeps its tail.
  static void settle_broadcast(const std::vector<Op>& calls, Slot& slot) {
    if (!same_root(calls)) {
      return;  // every root waits for receivers, every receiver for another root
    }
    const auto root = static_cast<std::size_t>(calls.front().root);
    const std::vector<std::byte> data = read_bytes(*calls[root].tensors.input);
    for (std::size_t rank = 0; rank < calls.size(); ++rank) {
      const auto room = static_cast<std::size_t>(bytes_of(calls[rank]));
      if (data.size() > room) {
        slot.fates[rank] = Fate::crashes;
        slot.failures[rank] = gloo_overflow_text(data.size(), room);
        continue;
      }
      slot.fates[rank] = Fate::completes;
      if (rank != root) {
        std::vector<std::byte> bytes = read_bytes(*calls[rank].tensors.input);
        std::copy(data.begin(), data.end(), bytes.begin());
        write_bytes(*calls[rank].tensors.input, bytes);
      }
    }
  }
};

class NcclRules final : public BackendRules {
 public:
  std::string_view name() const override { return "nccl"; }
  bool needs_cuda() const override { return true; }

  bool refuses(const Op& op) const override {
    return op.device.type != DeviceType::cuda && has_tensor(op.kind);
  }
  Error refusal(const Op&) const override { return ValueError("Tensors must be CUDA and dense"); }

  // Only what a kernel's steps depend on can make it hang: the kind, the byte count and the root. Dtype
  // and reduction pass silently.
  void settle(const GroupMatcher& matcher, Slot& slot) const override {
    const std::vector<Op> calls = calls_of(matcher, slot);
    give_all(slot, calls.size(), Fate::hangs);
    if (!same_kind(calls) || !same_root(calls) || !same_bytes(calls) || any_meta(calls)) {
      return;
    }
    give_all(slot, calls.size(), Fate::completes);
    if (!has_uniform_form(calls.front().kind)) {
      return;
    }
    reduce_as_each_sees_it(calls);
  }

  std::string timeout_text(Duration timeout) const override {
    return fmt::format(
        "Watchdog caught collective operation timeout: the operation ran for {} milliseconds before timing "
        "out",
        timeout / millisecond);
  }
  std::string lost_peer_text() const override { return {}; }

 private:
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
      write_bytes(*op.tensors.input, view->second[static_cast<std::size_t>(op.rank)]);
    }
  }

  // Everyone's result, if everyone had made the call `op`.
  static std::vector<std::vector<std::byte>> results_as(const Op& op,
                                                        const std::vector<std::vector<std::byte>>& inputs) {
    TensorList copies;
    std::vector<OpTensors> members;
    for (const std::vector<std::byte>& input : inputs) {
      copies.push_back(Tensor::zeros({op.numel}, op.dtype));
      write_bytes(*copies.back().storage(), input);
      members.push_back({.input = copies.back().storage()});
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

std::unique_ptr<BackendRules> make_backend_rules(std::string_view name) {
  if (name == "gloo") {
    return std::make_unique<GlooRules>();
  }
  expects(name == "nccl", "the backend's name has been checked");
  return std::make_unique<NcclRules>();
}

Admission::Admission(const BackendRules& rules) : one_gpu_per_rank_(rules.needs_cuda()) {
  Op op;
  for (const DeviceType type : {DeviceType::cpu, DeviceType::cuda, DeviceType::meta}) {
    op.device.type = type;
    for (std::size_t kind = 0; kind < op_kind_count; ++kind) {
      op.kind = static_cast<OpKind>(kind);
      for (std::size_t dtype = 0; dtype < dtype_count; ++dtype) {
        op.dtype = static_cast<Dtype>(dtype);
        for (std::size_t reduce = 0; reduce < reduce_op_count; ++reduce) {
          op.reduce = static_cast<ReduceOp>(reduce);
          admitted_[static_cast<std::size_t>(type)][kind][dtype][reduce] = !rules.refuses(op);
        }
      }
    }
  }
}

}  // namespace rollcall::sim
