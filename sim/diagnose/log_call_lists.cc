// The lists of calls that TORCH_DISTRIBUTED_DEBUG=DETAIL writes into logs: which rank's list ends early, or strays.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "sim/base/ascii.h"
#include "sim/diagnose/dump_ops.h"
#include "sim/diagnose/log_ranks.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

namespace {

using Kind = LogFact::Kind;

// The calls of a rank in its log, in order.
struct LoggedCalls {
  std::vector<const LogFact*> calls;
  bool has_groups = false;  // the numbers of several groups: some repeat

  const LogFact& last() const { return *calls.back(); }
};

// What a call has in common with its repetitions. The rank's number in the group is part of it: it may differ from
// group to group.
std::string token_of(const LogFact& fact) { return fact.op + fact.shape + fact.dtype + fact.group; }

// True if the rank's last call never followed the one before it earlier.
bool departs(const LoggedCalls& list) {
  if (list.calls.size() < 4) {
    return false;
  }
  const std::string before = token_of(*list.calls[list.calls.size() - 2]);
  const std::string last = token_of(list.last());
  std::size_t times = 0;
  for (std::size_t i = 1; i + 1 < list.calls.size(); ++i) {
    if (token_of(*list.calls[i - 1]) == before) {
      ++times;
      if (token_of(*list.calls[i]) == last) {
        return false;
      }
    }
  }
  return times >= 2;
}

// By rank, in their order; pointers into `facts`.
std::map<Rank, LoggedCalls> lists_in(const std::vector<LogFact>& facts) {
  std::map<Rank, LoggedCalls> lists;
  for (const LogFact& fact : facts) {
    if (fact.kind == Kind::calls) {
      LoggedCalls& list = lists[fact.ranks.first()];
      list.has_groups = list.has_groups || (!list.calls.empty() && fact.seq <= list.calls.back()->seq);
      list.calls.push_back(&fact);
    }
  }
  return lists;
}

bool has_groups_in(const std::map<Rank, LoggedCalls>& lists) {
  return std::ranges::any_of(lists, [](const auto& entry) { return entry.second.has_groups; });
}

// For calls of several groups, which the lines do not name: finds the one rank that made fewer calls than any other.
std::optional<Diagnosis> judge_fewest_calls(const std::map<Rank, LoggedCalls>& lists) {
  std::map<std::size_t, RankSet> by_length;
  for (const auto& [rank, list] : lists) {
    by_length[list.calls.size()].insert(rank);
  }
  const auto& [fewest, behind] = *by_length.begin();
  constexpr std::size_t apart_max = 4;  // a larger difference is how the job is built
  if (behind.size() != 1 || lists.size() < 3 || by_length.rbegin()->first - fewest > apart_max) {
    return std::nullopt;
  }
  const LogFact& last = lists.at(behind.first()).last();
  Diagnosis diagnosis = diagnosis_of(FindingKind::stuck_host, Confidence::low, behind);
  diagnosis.alternatives = {FindingKind::skipped_collective, FindingKind::early_exit};
  set_op(last.op, {}, behind, diagnosis);
  diagnosis.finding.headline = fmt::format("{} made fewer calls than any other rank", ranks_phrase(behind));
  diagnosis.finding.cause = fmt::format("its last is {} of {}", last.op, last.shape);
  diagnosis.finding.advice = fmt::format("check what {} did after that call", ranks_phrase(behind));
  diagnosis.evidence.push_back(
      fmt::format("{}: the last call in the log of {}", last.place(), ranks_phrase(behind)));
  diagnosis.would_settle.push_back(dumps_would_say);
  return diagnosis;
}

// For missing ranks that were all held up by messages.
Diagnosis held_up_by_messages(const RankSet& behind, const LogFact& waiting, const LogFact& shown) {
  Diagnosis diagnosis = diagnosis_of(FindingKind::p2p_mismatch, Confidence::low, behind);
  diagnosis.finding.tie = behind.size() > 1;
  set_op(waiting.op, {}, behind, diagnosis);
  diagnosis.alternatives = {FindingKind::stuck_host};
  diagnosis.finding.at->call.seq = waiting.seq;
  diagnosis.finding.headline = fmt::format("{} waited in messages until the timeout, and never made {} #{}",
                                           ranks_phrase(behind), waiting.op, waiting.seq);
  diagnosis.finding.cause = "their messages were not answered: the lists of calls do not say by whom";
  diagnosis.finding.advice = "post one recv for every send, between the same two ranks and in the same order";
  diagnosis.evidence.push_back(fmt::format("{}: {}", shown.place(), shown.text));
  diagnosis.would_settle.push_back(
      "the peers of the messages that the ranks wait in: DETAIL counts messages and does not list them; a "
      "run under `rollcall watch` does");
  return diagnosis;
}

}  // namespace

RankSet straying_ranks(const std::vector<LogFact>& facts) {
  RankSet straying;
  for (const auto& [rank, list] : lists_in(facts)) {
    if (departs(list)) {
      straying.insert(rank);
    }
  }
  return straying;
}

void doubt_calls_with_roots(const std::vector<LogFact>& facts, const RankSet& ranks, Diagnosis& diagnosis) {
  for (const auto& [rank, list] : lists_in(facts)) {
    if (ranks.contains(rank) && has_root(lower(list.last().op))) {
      diagnosis.confidence = Confidence::low;
      diagnosis.alternatives.insert(diagnosis.alternatives.begin(), FindingKind::root_mismatch);
      diagnosis.evidence.push_back(fmt::format(
          "{}: the last call of rank {} is {}, which has a root: the rank may wait in it, for ranks that "
          "name another root",
          list.last().place(), rank, list.last().op));
      return;
    }
  }
}

// DETAIL logs every call before it is made.
std::optional<Diagnosis> judge_call_lists(const std::vector<LogFact>& facts) {
  const std::map<Rank, LoggedCalls> lists = lists_in(facts);
  if (lists.size() < 2) {
    return std::nullopt;
  }
  std::map<std::int64_t, RankSet> by_last;
  // DETAIL also counts messages, but does not list them. Then the lengths of the lists are comparable, but the numbers
  // are not.
  bool counts_messages = false;
  bool begin_together = true;
  for (const auto& [rank, list] : lists) {
    const std::int64_t first = list.calls.front()->seq;
    begin_together = begin_together && first == lists.begin()->second.calls.front()->seq;
    counts_messages =
        counts_messages || static_cast<std::size_t>(list.last().seq - first) + 1 != list.calls.size();
  }
  if (!begin_together && !has_groups_in(lists)) {
    return std::nullopt;  // logs that were cut off, or messages before the first call
  }
  for (const auto& [rank, list] : lists) {
    by_last[counts_messages ? static_cast<std::int64_t>(list.calls.size()) : list.last().seq].insert(rank);
  }
  if (has_groups_in(lists)) {  // numbers of several groups, which the lines do not name
    const RankSet straying = straying_ranks(facts);
    if (straying.empty()) {
      return judge_fewest_calls(lists);
    }
    if (straying.size() == lists.size()) {
      return std::nullopt;
    }
    const LogFact& last = lists.at(straying.first()).last();
    Diagnosis diagnosis = diagnosis_of(FindingKind::cross_group_deadlock, Confidence::medium, straying);
    set_op(last.op, {}, {}, diagnosis);
    diagnosis.alternatives = {FindingKind::skipped_collective};
    diagnosis.finding.headline = fmt::format("{} left {} usual order of calls", ranks_phrase(straying),
                                             is_plural(straying) ? "their" : "its");
    diagnosis.finding.cause =
        fmt::format("the last call, {} of {}, followed on another than before", last.op, last.shape);
    diagnosis.finding.advice = groups_in_one_order;
    diagnosis.evidence.push_back(fmt::format("{}: the last call", last.place()));
    diagnosis.would_settle.push_back(dumps_would_say);
    return diagnosis;
  }
  if (by_last.size() < 2) {
    return std::nullopt;
  }
  RankSet ahead = by_last.rbegin()->second;
  RankSet behind;
  for (const auto& [seq, ranks] : by_last) {
    if (seq != by_last.rbegin()->first) {
      behind.insert(ranks);
    }
  }
  const LogFact& waiting = lists.at(ahead.first()).last();
  const RankSet silent = counts_messages ? difference(behind, waited_themselves(facts)) : behind;
  if (silent.empty()) {
    const auto shown = std::ranges::find_if(facts, [&behind](const LogFact& fact) {
      return fact.kind == Kind::gave_up && behind.contains(fact.ranks.first());
    });
    return held_up_by_messages(behind, waiting, *shown);
  }
  const bool is_extra = ahead.size() < behind.size() && silent == behind;
  const RankSet& odd = is_extra ? ahead : silent;
  const LogFact& own = lists.at(odd.first()).last();
  Diagnosis diagnosis = diagnosis_of(is_extra ? FindingKind::extra_collective : FindingKind::stuck_host,
                                     Confidence::medium, odd);
  diagnosis.alternatives = is_extra ? std::vector{FindingKind::stuck_host, FindingKind::partial_subgroup}
                                    : std::vector{FindingKind::early_exit, FindingKind::skipped_collective,
                                                  FindingKind::crashed_rank};
  set_op(waiting.op, ahead, behind, diagnosis);
  diagnosis.finding.at->call.seq = waiting.seq;
  diagnosis.finding.headline = fmt::format("{} {} {} #{}", ranks_phrase(odd),
                                           is_extra ? "alone made" : "never made", waiting.op, waiting.seq);
  diagnosis.finding.cause = fmt::format(
      "the last call of {} is {} #{}, that of {} is {} #{}", ranks_phrase(odd), own.op, own.seq,
      ranks_phrase(is_extra ? behind : ahead), is_extra ? lists.at(behind.first()).last().op : waiting.op,
      is_extra ? lists.at(behind.first()).last().seq : waiting.seq);
  diagnosis.finding.advice = fmt::format("check what {} did after that call", ranks_phrase(odd));
  diagnosis.evidence.push_back(
      fmt::format("{}: the last call in the log of {}", own.place(), ranks_phrase(odd)));
  diagnosis.would_settle.push_back(fmt::format("the host stack of {} (py-spy dump)", ranks_phrase(odd)));
  doubt_calls_with_roots(facts, behind, diagnosis);
  return diagnosis;
}

}  // namespace rollcall::check
