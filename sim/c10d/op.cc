#include "sim/c10d/op.h"

#include <array>

#include <fmt/format.h>

namespace rollcall {
namespace {

struct OpInfo {
  std::string_view name;
  bool reduces;
  bool rooted;
  bool carries = true;  // a tensor
};

constexpr std::array<OpInfo, op_kind_count> infos{{
    {"all_reduce", true, false},
    {"all_reduce_coalesced", true, false},
    {"broadcast", false, true},
    {"reduce", true, true},
    {"all_gather", false, false},
    {"all_gather_into_tensor", false, false},
    {"gather", false, true},
    {"scatter", false, true},
    {"reduce_scatter", true, false},
    {"reduce_scatter_tensor", true, false},
    {"all_to_all", false, false},
    {"all_to_all_single", false, false},
    {"barrier", false, false, false},
    {"send", false, true},
    {"recv", false, true},
    {"monitored_barrier", false, false, false},
    {"new_group", false, false, false},
    {"split_group", false, false, false},
    {"destroy_process_group", false, false, false},
    {"batch_isend_irecv", false, false, false},
    {"store_get", false, false, false},
    {"store_wait", false, false, false},
}};

const OpInfo& info(OpKind kind) { return infos[static_cast<std::size_t>(kind)]; }

}  // namespace

std::string_view to_string(OpKind kind) { return info(kind).name; }

std::optional<OpKind> parse_op_kind(std::string_view text) {
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (infos[i].name == text) {
      return static_cast<OpKind>(i);
    }
  }
  return std::nullopt;
}

bool has_reduce_op(OpKind kind) { return info(kind).reduces; }
bool has_root(OpKind kind) { return info(kind).rooted; }
bool has_tensor(OpKind kind) { return info(kind).carries; }
bool is_point_to_point(OpKind kind) { return kind == OpKind::send || kind == OpKind::recv; }
bool is_about_groups(OpKind kind) {
  return kind == OpKind::new_group || kind == OpKind::split_group || kind == OpKind::destroy_process_group ||
         kind == OpKind::batch_isend_irecv;
}
bool is_about_store(OpKind kind) { return kind == OpKind::store_get || kind == OpKind::store_wait; }

std::string describe(const Op& op) {
  std::string text(to_string(op.kind));
  if (!has_tensor(op.kind)) {
    return text + "()";
  }
  text += fmt::format("(numel={}, {}", op.numel, to_string(op.dtype));
  if (has_reduce_op(op.kind)) {
    text += fmt::format(", {}", to_string(op.reduce));
  }
  if (has_root(op.kind)) {
    text += fmt::format(", root={}", op.root);
  }
  return text + ")";
}

}  // namespace rollcall
