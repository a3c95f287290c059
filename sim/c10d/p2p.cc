#include "sim/c10d/p2p.h"

#include <fmt/core.h>

#include "sim/c10d/arguments.h"
#include "sim/c10d/groups.h"
#include "sim/c10d/rank_context.h"
#include "sim/torch/torch_traits.h"

namespace rollcall {
namespace {

constexpr Rank from_anyone = -1;

// A message to the rank itself crashes torch 1.13 with SIGSEGV; here all functions raise. Later releases raise in send,
// and leave the other functions to Gloo.
void check_peer(OpKind kind, bool async_op, const ProcessGroup& group, std::optional<Rank> global,
                Rank peer) {
  const RankContext& self = this_rank();
  if (peer == group.rank()) [[unlikely]] {
    const bool is_gloos = self.backend->traits().has_tags && !self.torch->gloo_self_message.empty();
    const bool is_send = kind == OpKind::send && !async_op;
    if (is_send || !is_gloos) {
      throw ValueError(
          fmt::format("Invalid {0} rank: {0} rank should not be the same as the rank of the current process.",
                      kind == OpKind::send ? "destination" : "source"));
    }
  }
  if (kind == OpKind::recv && global && peer < 0) [[unlikely]] {
    detail::refuse_peer(peer, group.size(), *self.torch);  // -1 is not "anyone" here, as it is in an Op
  }
}

// torch's P2POp checks it.
void check_batched(OpKind kind) {
  if (!is_point_to_point(kind)) {
    refuse_use(
        "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
        "``torch.distributed.irecv``.");
  }
}

Op describe_message(OpKind kind, const Tensor& tensor, std::optional<Rank> global_peer,
                    const PointToPointOptions& options, const ProcessGroup& group, bool async_op,
                    const Site& site) {
  const RankContext& self = this_rank();
  check_tensor(tensor, "tensor");
  Op op;
  op.kind = kind;
  op.async_op = async_op;
  op.group = group.id();
  op.rank = group.rank();
  op.root = global_peer ? root_in(group, *global_peer, kind, site) : from_anyone;
  check_peer(kind, async_op, group, global_peer, op.root);
  op.tag = options.tag;
  op.scope = self.scope;
  op.shadow = self.shadowing;
  op.stream = self.stream;
  op.tensors.input = tensor.storage();
  op.dtype = tensor.dtype();
  op.device = tensor.device();
  op.numel = tensor.numel();
  op.site = site;
  return op;
}

const ProcessGroup& group_of(const PointToPointOptions& options) {
  return options.group ? options.group : detail::default_group();
}

Work post(const Op& op) {
  spend_step();
  return this_rank().backend->issue(op);
}

}  // namespace

Error detail::no_such_peer(Rank peer, Rank group_size) {
  return {"IndexError", fmt::format("vector::_M_range_check: __n (which is {}) >= this->size() (which is {})",
                                    static_cast<std::uint64_t>(static_cast<std::int64_t>(peer)), group_size)};
}

void detail::refuse_peer(Rank peer, Rank group_size, const TorchTraits& torch) {
  if (!torch.gloo_connects_late) {
    throw no_such_peer(peer, group_size);
  }
  throw ProcessKilled{"SIGSEGV"};
}

void detail::check_message(const Op& op, Rank group_size, bool is_ordered, const TorchTraits& torch) {
  if (op.tag < 0 && !is_ordered) {
    throw RuntimeError("Tag must be nonnegative");
  }
  const bool names_nobody = op.kind == OpKind::recv && op.root < 0;
  if (names_nobody && is_ordered) {
    constexpr const char* text = "ProcessGroupNCCL does not support recvAnysource";
    throw Error(torch.nccl_errors_have_types ? "NotImplementedError" : "RuntimeError", text);
  }
  if (!names_nobody && (op.root < 0 || op.root >= group_size)) {
    if (is_ordered) {
      throw no_such_peer(op.root, group_size);
    }
    if (torch.gloo_connects_late && op.kind == OpKind::send && op.root >= group_size) {
      throw RuntimeError("Wait timeout");
    }
    refuse_peer(op.root, group_size, torch);
  }
  if (op.root == op.rank && !is_ordered) {
    throw RuntimeError(fmt::format(fmt::runtime(torch.gloo_self_message), op.rank));
  }
}

void send(const Tensor& tensor, Rank dst, const PointToPointOptions& options, Site site) {
  const ProcessGroup& group = group_of(options);
  if (!stands_outside(group, "send")) {
    post(describe_message(OpKind::send, tensor, dst, options, group, false, site)).wait();
  }
}

Rank recv(const Tensor& tensor, std::optional<Rank> src, const PointToPointOptions& options, Site site) {
  const ProcessGroup& group = group_of(options);
  if (stands_outside(group, "recv")) {
    return -1;
  }
  const Work work = post(describe_message(OpKind::recv, tensor, src, options, group, false, site));
  work.wait();
  return src ? *src : group.members().ranks[static_cast<std::size_t>(this_rank().backend->source_of(work))];
}

Work isend(const Tensor& tensor, Rank dst, const PointToPointOptions& options, Site site) {
  const ProcessGroup& group = group_of(options);
  return stands_outside(group, "isend")
             ? Work()
             : post(describe_message(OpKind::send, tensor, dst, options, group, true, site));
}

Work irecv(const Tensor& tensor, std::optional<Rank> src, const PointToPointOptions& options, Site site) {
  const ProcessGroup& group = group_of(options);
  return stands_outside(group, "irecv")
             ? Work()
             : post(describe_message(OpKind::recv, tensor, src, options, group, true, site));
}

std::vector<Work> batch_isend_irecv(std::span<const PointToPoint> batch, Site site) {
  std::vector<Op> ops;
  for (const PointToPoint& message : batch) {
    const ProcessGroup& group = group_of(message.options);
    if (!stands_outside(group, message.kind == OpKind::send ? "isend" : "irecv")) {
      check_batched(message.kind);
      ops.push_back(
          describe_message(message.kind, message.tensor, message.peer, message.options, group, true, site));
    }
  }
  spend_step();
  return this_rank().backend->issue_batch(ops);
}

}  // namespace rollcall
