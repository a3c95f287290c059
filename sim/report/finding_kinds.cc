#include "sim/report/finding_kinds.h"

#include <algorithm>
#include <iterator>
#include <ostream>

namespace rollcall {
namespace {

using Kind = FindingKind;

constexpr FindingRow rows[] = {
    {Kind::ok, "ok", "ok"},

    {Kind::missing_participant, "missing_participant", "deadlock"},
    {Kind::rank_crashed, "rank_crashed", "deadlock"},
    {Kind::unmatched_send, "unmatched_send", "deadlock"},
    {Kind::unmatched_recv, "unmatched_recv", "deadlock"},
    {Kind::wrong_peer, "wrong_peer", "deadlock"},
    {Kind::wrong_group, "wrong_group", "deadlock"},
    {Kind::send_send, "send_send", "deadlock"},
    {Kind::recv_recv, "recv_recv", "deadlock"},
    {Kind::p2p_order, "p2p_order", "deadlock"},
    {Kind::order_crossing, "order_crossing", "deadlock"},
    {Kind::store_never_served, "store_never_served", "deadlock"},
    {Kind::store_cycle, "store_cycle", "deadlock", "store_circle"},
    {Kind::waited_twice, "waited_twice", "deadlock"},
    {Kind::join_hook_mismatch, "join_hook_mismatch", "deadlock, mismatch, wrong_result"},

    {Kind::op_mismatch, "op_mismatch", "mismatch"},
    {Kind::numel_mismatch, "numel_mismatch", "mismatch"},
    {Kind::dtype_mismatch, "dtype_mismatch", "mismatch"},
    {Kind::reduce_op_mismatch, "reduce_op_mismatch", "mismatch"},
    {Kind::group_args_mismatch, "group_args_mismatch", "mismatch"},
    {Kind::root_mismatch, "root_mismatch", "mismatch"},
    {Kind::split_mismatch, "split_mismatch", "mismatch"},
    {Kind::root_not_in_group, "root_not_in_group", "mismatch"},

    {Kind::cpu_tensor, "cpu_tensor", "device_mismatch"},
    {Kind::duplicate_gpu, "duplicate_gpu", "device_mismatch"},
    {Kind::stray_device, "stray_device", "device_mismatch"},

    {Kind::mispaired, "mispaired", "wrong_result"},
    {Kind::value, "value", "wrong_result"},
    {Kind::stale_shard, "stale_shard", "wrong_result"},
    {Kind::samples_repeated, "samples_repeated", "wrong_result"},
    {Kind::trained_apart, "trained_apart", "wrong_result"},
    {Kind::stale_key, "stale_key", "wrong_result"},

    {Kind::watchdog_timeout, "watchdog_timeout", "race"},
    {Kind::read_before_wait, "read_before_wait", "race"},
    {Kind::write_before_wait, "write_before_wait", "race"},
    {Kind::free_before_wait, "free_before_wait", "race"},
    {Kind::drop_before_wait, "drop_before_wait", "race"},

    {Kind::work_never_completed, "work_never_completed", "resource_leak"},
    {Kind::work_never_waited, "work_never_waited", "resource_leak"},
    {Kind::group_not_destroyed, "group_not_destroyed", "resource_leak"},

    {Kind::raised, "raised", "rank_failed"},
    {Kind::early_termination, "early_termination", "rank_failed"},

    {Kind::ops, "ops", "limit_reached"},
    {Kind::simulated_time, "simulated_time", "limit_reached"},
    {Kind::output_lines, "output_lines", "limit_reached"},
    {Kind::store_size, "store_size", "limit_reached"},
    {Kind::memory, "memory", "limit_reached"},
    {Kind::pending_calls, "pending_calls", "limit_reached"},
    {Kind::deadline, "deadline", "limit_reached"},
    {Kind::never_connected, "never_connected", "limit_reached"},
    {Kind::interrupted, "interrupted", "limit_reached"},
    {Kind::stalled, "stalled", "limit_reached"},

    {Kind::gpu_memory, "gpu_memory", "does_not_fit"},

    {.kind = Kind::no_fault, .word = "no_fault", .same_in_runs = Kind::ok},
    {.kind = Kind::straggler, .word = "straggler"},
    {.kind = Kind::stuck_host, .word = "stuck_host", .same_in_runs = Kind::missing_participant},
    {.kind = Kind::early_exit, .word = "early_exit", .same_in_runs = Kind::missing_participant},
    {.kind = Kind::stuck_device, .word = "stuck_device"},
    {.kind = Kind::crashed_rank, .word = "crashed_rank", .same_in_runs = Kind::rank_crashed},
    {.kind = Kind::partial_subgroup, .word = "partial_subgroup", .same_in_runs = Kind::missing_participant},
    {.kind = Kind::cross_group_deadlock,
     .word = "cross_group_deadlock",
     .same_in_runs = Kind::order_crossing},
    {.kind = Kind::p2p_mismatch, .word = "p2p_mismatch"},
    {.kind = Kind::op_type_mismatch, .word = "op_type_mismatch", .same_in_runs = Kind::op_mismatch},
    {.kind = Kind::size_mismatch, .word = "size_mismatch", .same_in_runs = Kind::numel_mismatch},
    {.kind = Kind::skipped_collective,
     .word = "skipped_collective",
     .same_in_runs = Kind::missing_participant},
    {.kind = Kind::extra_collective, .word = "extra_collective", .same_in_runs = Kind::missing_participant},
    {.kind = Kind::desync_after_exception, .word = "desync_after_exception"},
    {.kind = Kind::join_shadow_mismatch,
     .word = "join_shadow_mismatch",
     .same_in_runs = Kind::join_hook_mismatch},
    {.kind = Kind::stall_all_arrived, .word = "stall_all_arrived"},
};

// A kind is its row's index: a missing or misplaced row does not compile.
constexpr bool are_in_order() {
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    if (rows[i].kind != static_cast<Kind>(i)) {
      return false;
    }
  }
  return std::size(rows) == static_cast<std::size_t>(Kind::stall_all_arrived) + 1;
}
static_assert(are_in_order());

const FindingRow& row_of(FindingKind kind) { return rows[static_cast<std::size_t>(kind)]; }

}  // namespace

std::span<const FindingRow> finding_rows() { return rows; }

std::string_view to_string(FindingKind kind) { return row_of(kind).word; }

std::string_view verdicts_of(FindingKind kind) { return row_of(kind).verdicts; }

bool occurs_with(FindingKind kind, std::string_view verdict) {
  constexpr std::string_view comma = ", ";
  std::string_view rest = verdicts_of(kind);
  while (!rest.empty()) {
    const std::string_view each = rest.substr(0, rest.find(comma));
    if (each == verdict) {
      return true;
    }
    rest.remove_prefix(std::min(rest.size(), each.size() + comma.size()));
  }
  return false;
}

std::vector<std::string_view> words_of(const std::vector<FindingKind>& kinds) {
  std::vector<std::string_view> words;
  for (const FindingKind kind : kinds) {
    words.push_back(to_string(kind));
  }
  return words;
}

std::optional<FindingKind> parse_finding_kind(std::string_view word) {
  const auto* const row = std::ranges::find_if(rows, [word](const FindingRow& each) {
    return each.word == word || (!each.old_word.empty() && each.old_word == word);
  });
  return row == std::end(rows) ? std::nullopt : std::optional(row->kind);
}

bool are_same_fault(FindingKind a, FindingKind b) { return row_of(a).same_in_runs == row_of(b).same_in_runs; }

std::ostream& operator<<(std::ostream& out, FindingKind kind) { return out << to_string(kind); }

}  // namespace rollcall
