#pragma once

// FindingKind: what exactly is wrong, in more detail than a verdict. One row per kind has its word in reports and the
// verdicts it occurs with; docs/findings.md explains each of them to users, and `rollcall explain` prints that.

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace rollcall {

enum class FindingKind : std::uint8_t {
  ok,  // nothing is wrong

  // Of runs.
  missing_participant,
  rank_crashed,
  unmatched_send,
  unmatched_recv,
  wrong_peer,
  wrong_group,
  send_send,
  recv_recv,
  p2p_order,
  order_crossing,
  store_never_served,
  store_cycle,
  waited_twice,
  join_hook_mismatch,
  op_mismatch,
  numel_mismatch,
  dtype_mismatch,
  reduce_op_mismatch,
  group_args_mismatch,
  root_mismatch,
  split_mismatch,
  root_not_in_group,
  cpu_tensor,
  duplicate_gpu,
  stray_device,
  mispaired,
  value,
  stale_shard,
  samples_repeated,
  trained_apart,
  stale_key,
  watchdog_timeout,
  read_before_wait,
  write_before_wait,
  free_before_wait,
  drop_before_wait,
  work_never_completed,
  work_never_waited,
  group_not_destroyed,
  raised,
  early_termination,
  ops,
  simulated_time,
  output_lines,
  store_size,
  memory,
  pending_calls,
  deadline,
  never_connected,
  interrupted,
  stalled,

  // Of predictions.
  gpu_memory,

  // Of recordings. dtype_mismatch is found in both.
  no_fault,
  straggler,
  stuck_host,
  early_exit,
  stuck_device,
  crashed_rank,
  partial_subgroup,
  cross_group_deadlock,
  p2p_mismatch,
  op_type_mismatch,
  size_mismatch,
  skipped_collective,
  extra_collective,
  desync_after_exception,
  join_shadow_mismatch,
  stall_all_arrived,
};

struct FindingRow {
  FindingKind kind = FindingKind::ok;
  std::string_view word;  // the enumerator's name
  std::string_view
      verdicts{};  // those it occurs with, the usual one first: "deadlock, mismatch"; empty: a recording's
  std::string_view old_word{};      // a former word of reports; still read
  FindingKind same_in_runs = kind;  // for a recording's kind: the kind of the same fault in runs
};

// In the order of the enumeration.
std::span<const FindingRow> finding_rows();

std::string_view to_string(FindingKind kind);
// "deadlock, mismatch"; empty for a kind of recordings.
std::string_view verdicts_of(FindingKind kind);
bool occurs_with(FindingKind kind, std::string_view verdict);
std::vector<std::string_view> words_of(const std::vector<FindingKind>& kinds);
// Finds a kind by its word or the old one; empty if there is none.
std::optional<FindingKind> parse_finding_kind(std::string_view word);
// True if the two are one fault, even if one is a recording's kind.
bool are_same_fault(FindingKind a, FindingKind b);

// For the messages of tests.
std::ostream& operator<<(std::ostream& out, FindingKind kind);

}  // namespace rollcall
