#include "sim/c10d/op_table.h"

#include <algorithm>

namespace rollcall {

// Facts: torch/distributed/distributed_c10d.py, torch/csrc/distributed/c10d/ProcessGroupGloo.cpp,
// ProcessGroupNCCL.cpp and Types.hpp; aliases also PARAM's commsTraceParser.py and Chakra's et_def.proto.
constexpr std::array<OpRow, op_kind_count> op_rows{{
    {.kind = OpKind::all_reduce,
     .name = "all_reduce",
     .given = Tensors::one,
     .reduces = true,
     .as_real = true,
     .gloo = GlooFunction::all_reduce,
     .nccl = NcclFunction::all_reduce,
     .op_type = "ALLREDUCE",
     .titles = {"all_reduce", "allreduce"},
     .kineto = "allreduce"},
    {.kind = OpKind::all_reduce_coalesced,
     .name = "all_reduce_coalesced",
     .given = Tensors::several,
     .reduces = true,
     .as_real = true,
     .gloo = GlooFunction::all_reduce,  // of the tensors in a row
     .gloo_method = "allreduce_coalesced",
     .nccl = NcclFunction::all_reduce,
     .op_type = "ALLREDUCE_COALESCED",
     .titles = {"allreduce_coalesced"},
     .kineto = "allreduce_coalesced"},
    {.kind = OpKind::broadcast,
     .name = "broadcast",
     .given = Tensors::one,
     .root = Root::source,
     .gloo = GlooFunction::broadcast,
     .gloo_method = "broadcast",
     .nccl = NcclFunction::broadcast,
     .op_type = "BROADCAST",
     .titles = {"broadcast"}},
    {.kind = OpKind::reduce,
     .name = "reduce",
     .given = Tensors::one,
     .root = Root::destination,
     .reduces = true,
     .gloo = GlooFunction::reduce,
     .gloo_method = "reduce",
     .nccl = NcclFunction::reduce,
     .op_type = "REDUCE",
     .titles = {"reduce"}},
    {.kind = OpKind::all_gather,
     .name = "all_gather",
     .given = Tensors::one,
     .filled = Tensors::per_member,  // or one tensor with their places end to end: all_gather_flat
     .sizes = Sizes::gathered,
     .as_real = true,
     .gloo = GlooFunction::all_gather,
     .gloo_method = "allgather",
     .nccl = NcclFunction::all_gather,
     .op_type = "ALLGATHER",
     .titles = {"all_gather", "allgather"},
     .aliases = {"allgatherobject", "allgatherv"},
     .kineto = "allgather"},
    {.kind = OpKind::all_gather_into_tensor,
     .name = "all_gather_into_tensor",
     .given = Tensors::one,
     .filled = Tensors::one,
     .sizes = Sizes::gathered,
     .as_real = true,
     .gloo = GlooFunction::all_gather,
     .gloo_method = "allgather",
     .gloo_since = TorchRelease::v2_6,
     .gloo_refusal = "no support for _allgather_base in Gloo process group",
     .nccl = NcclFunction::all_gather,
     .op_type = "_ALLGATHER_BASE",
     .titles = {"_all_gather_base"},
     .aliases = {"allgathersingle"},
     .kineto = "_allgather_base"},
    {.kind = OpKind::gather,
     .name = "gather",
     .given = Tensors::one,
     .filled = Tensors::per_member_on_root,
     .sizes = Sizes::gathered,
     .root = Root::destination,
     .gloo = GlooFunction::gather,
     .gloo_method = "gather",
     .nccl = NcclFunction::messages,
     .op_type = "GATHER",
     .titles = {"gather"}},
    {.kind = OpKind::gather_single,
     .name = "gather_single",
     .since = TorchRelease::v2_14,
     .given = Tensors::one,
     .filled = Tensors::one,  // on the root only
     .sizes = Sizes::gathered,
     .root = Root::destination,
     .gloo_since = no_torch,
     .gloo_refusal = "{} gloo does not support gather_single",
     .nccl = NcclFunction::messages,
     .op_type = "GATHER",
     .titles = {"gather_single"}},
    {.kind = OpKind::scatter,
     .name = "scatter",
     .given = Tensors::per_member_on_root,
     .filled = Tensors::one,
     .sizes = Sizes::divided,
     .root = Root::source,
     .as_real = true,
     .gloo = GlooFunction::scatter,
     .gloo_method = "scatter",
     .nccl = NcclFunction::messages,
     .op_type = "SCATTER",
     .titles = {"scatter"}},
    {.kind = OpKind::reduce_scatter,
     .name = "reduce_scatter",
     .given = Tensors::per_member,
     .filled = Tensors::one,
     .sizes = Sizes::divided,
     .reduces = true,
     .gloo = GlooFunction::all_reduce,
     .gloo_method = "reduce_scatter",
     .gloo_since = TorchRelease::v2_11,
     .gloo_refusal = "ProcessGroupGloo does not support reduce_scatter",
     .nccl = NcclFunction::reduce_scatter,
     .op_type = "REDUCE_SCATTER",
     .titles = {"reduce_scatter"},
     .aliases = {"reducescatterv"}},
    {.kind = OpKind::reduce_scatter_tensor,
     .name = "reduce_scatter_tensor",
     .given = Tensors::one,
     .filled = Tensors::one,
     .sizes = Sizes::divided,
     .reduces = true,
     .gloo = GlooFunction::all_reduce,  // of everything, then each rank takes its part
     .gloo_method = "reduce_scatter_tensor_coalesced",
     .gloo_since = TorchRelease::v2_6,
     .gloo_refusal = "{} gloo does not support _reduce_scatter_base",
     .nccl = NcclFunction::reduce_scatter,
     .op_type = "_REDUCE_SCATTER_BASE",
     .titles = {"_reduce_scatter_base"},
     .aliases = {"reducescatterblock", "reducescattersingle"},
     .kineto = "_reduce_scatter_base"},
    {.kind = OpKind::all_to_all,
     .name = "all_to_all",
     .given = Tensors::per_member,
     .filled = Tensors::per_member,
     .sizes = Sizes::exchanged,
     .as_real = true,
     .gloo = GlooFunction::all_to_all,
     .gloo_method = "alltoall",
     .gloo_since = TorchRelease::v2_14,
     .gloo_refusal = "{} gloo does not support alltoall",
     .nccl = NcclFunction::messages,
     .op_type = "ALLTOALL",
     .titles = {"all_to_all"}},
    {.kind = OpKind::all_to_all_single,
     .name = "all_to_all_single",
     .given = Tensors::one,
     .filled = Tensors::one,
     .sizes = Sizes::exchanged,
     .as_real = true,
     .gloo = GlooFunction::all_to_all,
     .gloo_method = "alltoall_base",
     .nccl = NcclFunction::messages,
     .op_type = "ALLTOALL_BASE",
     .titles = {"all_to_all", "alltoall", "alltoall_base"},  // recorded as all_to_all is, and read as this
     .aliases = {"alltoallv"},
     .kineto = "all_to_allv"},
    {.kind = OpKind::barrier,
     .name = "barrier",
     .gloo = GlooFunction::barrier,
     .nccl = NcclFunction::all_reduce,  // of one float
     .op_type = "BARRIER",
     .titles = {"all_reduce_barrier"}},
    {.kind = OpKind::send,
     .name = "send",
     .family = Family::message,
     .given = Tensors::one,
     .root = Root::destination,
     .nccl = NcclFunction::messages,
     .op_type = "SEND",
     .titles = {"send"},
     .aliases = {"isend"}},
    {.kind = OpKind::recv,
     .name = "recv",
     .family = Family::message,
     .given = Tensors::one,  // receives what arrives
     .root = Root::source,
     .nccl = NcclFunction::messages,
     .op_type = "RECV",
     .titles = {"recv"},
     .aliases = {"irecv"}},
    {.kind = OpKind::monitored_barrier, .name = "monitored_barrier", .gloo = GlooFunction::monitored_barrier},
    {.kind = OpKind::new_group, .name = "new_group", .family = Family::about_groups},
    {.kind = OpKind::split_group,
     .name = "split_group",
     .since = TorchRelease::v2_6,
     .family = Family::about_groups},
    {.kind = OpKind::destroy_process_group, .name = "destroy_process_group", .family = Family::about_groups},
    {.kind = OpKind::batch_isend_irecv, .name = "batch_isend_irecv", .family = Family::about_groups},
    {.kind = OpKind::store_get, .name = "store_get", .family = Family::about_store},
    {.kind = OpKind::store_wait, .name = "store_wait", .family = Family::about_store},
}};

namespace {

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < op_rows.size(); ++i) {
    if (static_cast<std::size_t>(op_rows[i].kind) != i) {
      return false;
    }
  }
  return true;
}
static_assert(is_in_order(), "row_of finds a row by its kind's number");

}  // namespace

std::optional<OpKind> parse_op_kind(std::string_view text) {
  const auto found = std::ranges::find(op_rows, text, &OpRow::name);
  if (found != op_rows.end()) {
    return found->kind;
  }
  const auto alias = std::ranges::find(op_aliases, text, &OpAlias::name);
  return alias == op_aliases.end() ? std::nullopt : std::optional(alias->kind);
}

TorchRelease function_since(std::string_view name) {
  const auto alias = std::ranges::find(op_aliases, name, &OpAlias::name);
  if (alias != op_aliases.end()) {
    return alias->since;
  }
  const auto row = std::ranges::find(op_rows, name, &OpRow::name);
  return row == op_rows.end() ? TorchRelease::v1_13 : row->since;
}

std::string_view name_in(TorchRelease torch, OpKind kind) {
  const auto alias = std::ranges::find(op_aliases, kind, &OpAlias::kind);
  return alias != op_aliases.end() && torch >= alias->since ? alias->name : to_string(kind);
}

}  // namespace rollcall
