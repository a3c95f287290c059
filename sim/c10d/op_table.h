#pragma once

// The table of operations. A row says what an operation is: which tensors it takes, how large its results are, whether
// it has a root, what Gloo, NCCL and recordings call it. Code that treats operations alike except for these facts reads
// the row; no other code lists all operations.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/torch/torch_release.h"

namespace rollcall {

enum class OpKind : std::uint8_t {
  all_reduce,
  all_reduce_coalesced,
  broadcast,
  reduce,
  all_gather,
  all_gather_into_tensor,
  gather,
  gather_single,
  scatter,
  reduce_scatter,
  reduce_scatter_tensor,
  all_to_all,
  all_to_all_single,
  barrier,
  send,  // isend is a send with async_op set
  recv,
  monitored_barrier,
  // About groups. They carry no tensor, and each of the four counts its own calls on a group.
  new_group,
  split_group,
  destroy_process_group,
  batch_isend_irecv,  // as a group's first call on nccl: it makes the group's communicator
  // Calls outside any group that can block a rank.
  store_get,
  store_wait,
};
inline constexpr std::size_t op_kind_count = static_cast<std::size_t>(OpKind::store_wait) + 1;

// Which ranks take part, and where the call is counted.
enum class Family : std::uint8_t { collective, message, about_groups, about_store };

// The tensors that a call reads, or writes.
enum class Tensors : std::uint8_t {
  none,
  one,
  several,             // any number, each treated separately
  per_member,          // a list with one for each member
  per_member_on_root,  // the same, on the root only
};

// How much a rank gets, compared with what it gives.
enum class Sizes : std::uint8_t {
  equal,
  gathered,   // size times as much
  divided,    // a size-th of it
  exchanged,  // a part from each member for a part to each
};

enum class Root : std::uint8_t { none, source, destination };

// Gloo's function behind torch's (gloo/*.h).
enum class GlooFunction : std::uint8_t {
  none,
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  gather,
  scatter,
  all_to_all,
  barrier,
  monitored_barrier,  // torch's own, made of messages
};

// NCCL's function. messages: torch builds it from ncclSend and ncclRecv in one group.
enum class NcclFunction : std::uint8_t {
  none,
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  messages,
};

struct OpRow {
  OpKind kind;
  std::string_view name;                     // torch.distributed's function
  TorchRelease since = TorchRelease::v1_13;  // the first to have it
  Family family = Family::collective;

  Tensors given = Tensors::none;
  Tensors filled = Tensors::none;  // none: the tensors given are, if there are any
  Sizes sizes = Sizes::equal;
  Root root = Root::none;
  bool reduces = false;
  bool as_real = false;  // for complex tensors, the backend gets torch.view_as_real

  GlooFunction gloo = GlooFunction::none;
  std::string_view gloo_method{};  // raises errors about arguments (ProcessGroupGloo.cpp)
  TorchRelease gloo_since = TorchRelease::v1_13;
  std::string_view gloo_refusal{};  // of earlier releases; {}: TorchTraits::gloo_base_class
  NcclFunction nccl = NcclFunction::none;

  std::string_view op_type{};  // c10d's OpType
  // Names in recordings. Titles are the Flight Recorder's, first the one that is written; aliases are those of other
  // recorders, in lower case and without underscores.
  std::array<std::string_view, 3> titles{};
  std::array<std::string_view, 2> aliases{};
  std::string_view kineto{};  // its name in record_param_comms; empty: `name`
};

extern const std::array<OpRow, op_kind_count> op_rows;

inline const OpRow& row_of(OpKind kind) { return op_rows[static_cast<std::size_t>(kind)]; }

// A second name that torch has for an operation. The older one remains, and reports use it.
struct OpAlias {
  std::string_view name;
  OpKind kind;
  TorchRelease since;
};
inline constexpr std::array<OpAlias, 2> op_aliases{{
    {"all_gather_single", OpKind::all_gather_into_tensor, TorchRelease::v2_14},
    {"reduce_scatter_single", OpKind::reduce_scatter_tensor, TorchRelease::v2_14},
}};

// The first release whose torch.distributed has a function of this name; the oldest for names not in the tables.
TorchRelease function_since(std::string_view name);
inline bool has_function(TorchRelease torch, std::string_view name) { return torch >= function_since(name); }
// The operation's name in a release's own texts: the newest one.
std::string_view name_in(TorchRelease torch, OpKind kind);

inline std::string_view to_string(OpKind kind) { return row_of(kind).name; }
// Finds an operation by any of its names.
std::optional<OpKind> parse_op_kind(std::string_view text);

inline bool has_reduce_op(OpKind kind) { return row_of(kind).reduces; }
inline bool has_root(OpKind kind) { return row_of(kind).root != Root::none; }
inline bool has_tensor(OpKind kind) { return row_of(kind).given != Tensors::none; }
inline bool is_point_to_point(OpKind kind) { return row_of(kind).family == Family::message; }
inline bool is_about_groups(OpKind kind) { return row_of(kind).family == Family::about_groups; }
inline bool is_about_store(OpKind kind) { return row_of(kind).family == Family::about_store; }

// True if a collective leaves its results in the tensors given.
inline bool works_in_place(OpKind kind) { return row_of(kind).filled == Tensors::none; }
// True if the results are a list.
inline bool fills_list(OpKind kind) { return row_of(kind).filled > Tensors::one; }
// True if some rank passes a list with a tensor for each member.
inline bool gives_list(OpKind kind) { return row_of(kind).given >= Tensors::per_member; }
// torch's name for the root argument.
inline std::string_view root_argument(OpKind kind) {
  return row_of(kind).root == Root::source ? "src" : "dst";
}

}  // namespace rollcall
