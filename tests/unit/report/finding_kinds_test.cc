#include "sim/report/finding_kinds.h"

#include <set>

#include "tests/catch.h"

namespace rollcall::finding_kinds_test {

TEST_CASE("a kind of finding is read by the word that reports write") {
  std::set<std::string_view> words;
  for (const FindingRow& row : finding_rows()) {
    CAPTURE(row.word);
    CHECK(words.insert(row.word).second);
    CHECK(to_string(row.kind) == row.word);
    CHECK(parse_finding_kind(row.word) == row.kind);
  }
  CHECK_FALSE(parse_finding_kind("misspelled"));
  CHECK_FALSE(parse_finding_kind(""));
}

TEST_CASE("words of older reports are read, and no longer written") {
  CHECK(parse_finding_kind("store_circle") == FindingKind::store_cycle);
  for (const FindingRow& row : finding_rows()) {
    if (!row.old_word.empty()) {
      CHECK(parse_finding_kind(row.old_word) == row.kind);
      CHECK(to_string(row.kind) != row.old_word);
    }
  }
}

TEST_CASE("a kind occurs with the verdicts of its row") {
  CHECK(occurs_with(FindingKind::join_hook_mismatch, "deadlock"));
  CHECK(occurs_with(FindingKind::join_hook_mismatch, "mismatch"));
  CHECK_FALSE(occurs_with(FindingKind::cpu_tensor, "mismatch"));  // it occurs with device_mismatch
  CHECK_FALSE(occurs_with(FindingKind::stuck_host, "deadlock"));
}

TEST_CASE("a fault that recordings call otherwise is the same fault") {
  CHECK(are_same_fault(FindingKind::crashed_rank, FindingKind::rank_crashed));
  CHECK(are_same_fault(FindingKind::order_crossing, FindingKind::cross_group_deadlock));
  CHECK(are_same_fault(FindingKind::no_fault, FindingKind::ok));
  CHECK(are_same_fault(FindingKind::stuck_host, FindingKind::missing_participant));
  CHECK_FALSE(are_same_fault(FindingKind::stuck_host, FindingKind::rank_crashed));
  for (const FindingRow& row : finding_rows()) {
    CHECK(are_same_fault(row.kind, row.kind));
    CHECK((row.same_in_runs == row.kind || row.verdicts.empty()));  // only recordings use other kinds
  }
}

}  // namespace rollcall::finding_kinds_test
