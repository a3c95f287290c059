#include "sim/match/outlook.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace rollcall::check {

int count_of(OpKind kind) {
  return is_about_groups(kind) ? 2 + static_cast<int>(kind) : is_point_to_point(kind) ? 1 : 0;
}

namespace {

// Rows of a tensor as elements.
std::vector<std::int64_t> parts_in_elements(const std::vector<std::int64_t>& rows, const Storage* storage) {
  std::vector<std::int64_t> parts;
  if (storage != nullptr) {
    const std::span<const std::int64_t> sizes = storage->shape.sizes();
    const std::int64_t height = sizes.empty() ? storage->numel : sizes.front();
    for (const std::int64_t count : rows) {
      parts.push_back(height == 0 ? 0 : count * (storage->numel / height));
    }
  }
  return parts;
}

}  // namespace

ProgramCall program_call(const Op& op, const GroupMembers& group, std::int64_t seq, const ScopeTable& scopes,
                         bool has_tags) {
  ProgramCall call{.kind = op.kind, .group = group.name, .seq = seq};
  call.label = scopes.path(op.scope);
  const Pairing pairing = scopes.pairing(op.scope);
  call.pairing = scopes.pairing_name(pairing);
  call.is_strict = pairing.strict;
  if (op.tensors.splits != nullptr) {
    call.given_parts = parts_in_elements(op.tensors.splits->input, op.tensors.input);
    call.filled_parts = parts_in_elements(op.tensors.splits->output, op.tensors.output);
  }
  call.is_root = has_root(op.kind) && op.root == op.rank;
  if (is_point_to_point(op.kind)) {
    const bool is_member = op.root >= 0 && op.root < group.size();
    call.peer = is_member ? group.ranks[static_cast<std::size_t>(op.root)] : -1;
    call.tag = has_tags ? op.tag : 0;
  }
  call.reduce = op.reduce;
  call.root = op.root;
  call.async_op = op.async_op;
  call.shadow = op.shadow;
  call.site = to_string(op.site);
  if (has_tensor(op.kind)) {
    call.numel = op.numel;
    call.dtype = to_string(op.dtype);
  }
  return call;
}

Step step_of(const Op& op, const ScopeTable& scopes, std::int64_t seq) {
  const std::string_view pairing = scopes.pairing_name(scopes.pairing(op.scope));
  std::string text(to_string(op.kind));
  text += has_tensor(op.kind) ? fmt::format(" {} {}", op.numel, to_string(op.dtype)) : "";
  const bool is_presence = pairing == "join.presence";
  return {.text = std::move(text),
          .label = scopes.path(op.scope),
          .site = to_string(op.site),
          .group = op.group,
          .seq = seq,
          .shadow = op.shadow,
          .is_presence = is_presence,
          .is_joins = is_presence || pairing == "join.terminate"};
}

std::span<const CallEdit> edits_of(const CallEdits& edits, Rank rank) {
  return std::ranges::equal_range(edits, rank, {}, &CallEdit::rank);
}

}  // namespace rollcall::check
