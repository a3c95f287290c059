#include <algorithm>
#include <map>
#include <string>

#include <fmt/core.h>

#include "sim/diagnose/log_calls.h"
#include "sim/diagnose/log_judge.h"
#include "sim/diagnose/log_ranks.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

using Kind = LogFact::Kind;

namespace {

// Ranks that have given up waiting: where they are now does not say where they waited.
RankSet victims_in(const std::vector<LogFact>& facts) {
  return ranks_with(facts, {Kind::lost_peer, Kind::gave_up});
}

// Where the stacks of ranks part: the ranks by the frame that follows on those that all have in common, "" for a stack
// that ends there.
struct Fork {
  std::string common;  // the last frame that all have
  std::map<std::string, RankSet> branches;
};

std::optional<Fork> fork_of(const std::map<Rank, const LogFact*>& stacks) {
  for (std::size_t depth = 0;; ++depth) {
    Fork fork;
    for (const auto& [rank, stack] : stacks) {
      fork.common = depth > 0 ? stack->frames[depth - 1] : "";
      fork.branches[depth < stack->frames.size() ? stack->frames[depth] : ""].insert(RankSet{rank});
    }
    if (fork.branches.size() > 1) {
      return fork;
    }
    if (fork.branches.contains("")) {
      return std::nullopt;  // all are in one place
    }
  }
}

// Calls on GPUs return before they are over. So ranks that wait for different calls stand in different places, wherever
// they first need a result, and the odd one out is where the others are not.
std::optional<Diagnosis> judge_parting_stacks(const std::vector<LogFact>& facts) {
  std::map<Rank, const LogFact*> stacks;
  const RankSet victims = victims_in(facts);
  for (const LogFact& fact : facts) {
    if (fact.kind == Kind::stack && !fact.frames.empty() && !victims.contains(fact.ranks)) {
      stacks.emplace(fact.ranks.first(), &fact);
    }
  }
  const std::optional<Fork> fork = stacks.size() < 3 ? std::nullopt : fork_of(stacks);
  if (!fork || fork->branches.size() != 2) {
    return std::nullopt;
  }
  const auto [smaller, larger] = std::ranges::minmax_element(
      fork->branches, {}, [](const auto& branch) { return branch.second.size(); });
  const auto& [place, odd] = *smaller;
  const auto& [usual, most] = *larger;
  if (odd.size() == most.size()) {
    return std::nullopt;
  }
  const auto phrase = [&fork](const std::string& frame) { return frame.empty() ? fork->common : frame; };
  const LogFact& own = *stacks.at(odd.first());
  const LogFact& theirs = *stacks.at(most.first());
  if (is_message(own.op) || is_about_groups(own.op)) {
    return std::nullopt;  // it waits for a rank that it names, which the stack does not show
  }
  Diagnosis diagnosis = diagnosis_of(FindingKind::stuck_host, Confidence::low, odd);
  diagnosis.alternatives = {FindingKind::skipped_collective, FindingKind::extra_collective,
                            FindingKind::straggler};
  diagnosis.finding.headline = fmt::format("{} in {}, and {} in {}", with_verb(odd, "is", "are"),
                                           phrase(place), with_verb(most, "is", "are"), phrase(usual));
  diagnosis.finding.cause = fmt::format(
      "their ways part{}: {} now in {}, {} in {}", fork->common.empty() ? "" : " after " + fork->common,
      with_verb(odd, "is", "are"), own.text, with_verb(most, "is", "are"), theirs.text);
  diagnosis.finding.advice =
      fmt::format("look for what decides there between the two, and differs on {}", ranks_phrase(odd));
  diagnosis.evidence = {fmt::format("{}: the stack of {}", own.place(), ranks_phrase({odd.first()})),
                        fmt::format("{}: the stack of {}", theirs.place(), ranks_phrase({most.first()}))};
  diagnosis.would_settle.push_back(dumps_would_say);
  return diagnosis;
}

// By the calls of torch.distributed that the ranks are in.
std::optional<Diagnosis> judge_calls_of_stacks(const std::vector<LogFact>& facts) {
  std::map<Rank, const LogFact*> stacks;
  std::map<std::string, RankSet> by_op;
  RankSet elsewhere;
  const RankSet victims = victims_in(facts);
  for (const LogFact& fact : facts) {
    const bool is_victim = fact.op.empty() && victims.contains(fact.ranks);
    if (fact.kind == Kind::stack && !is_victim && stacks.emplace(fact.ranks.first(), &fact).second) {
      if (fact.op.empty()) {
        elsewhere.insert(fact.ranks);
      } else {
        by_op[fact.op].insert(fact.ranks);
      }
    }
  }
  if (stacks.size() < 2 || by_op.empty()) {
    return std::nullopt;
  }
  const auto& [op, most] =
      *std::ranges::max_element(by_op, {}, [](const auto& entry) { return entry.second.size(); });
  const auto describe = [&](const RankSet& ranks) {
    return stack_line(*stacks.at(ranks.first()), {ranks.first()});
  };
  const std::size_t in_calls = stacks.size() - elsewhere.size();
  if (!elsewhere.empty()) {
    if (elsewhere.size() >= in_calls || most.size() != in_calls) {
      return std::nullopt;
    }
    Diagnosis diagnosis = diagnosis_of(FindingKind::stuck_host, Confidence::low, elsewhere);
    diagnosis.alternatives = {FindingKind::straggler, FindingKind::early_exit};
    set_op(op, most, elsewhere, diagnosis);
    diagnosis.finding.headline =
        fmt::format("{} in {}, and {} in {}", with_verb(elsewhere, "is", "are"),
                    stacks.at(elsewhere.first())->text, with_verb(most, "waits", "wait"), op);
    diagnosis.finding.cause = fmt::format("the program of {} is elsewhere", ranks_phrase(elsewhere));
    diagnosis.finding.advice = fmt::format("inspect {}", stacks.at(elsewhere.first())->site.empty()
                                                             ? stacks.at(elsewhere.first())->text
                                                             : stacks.at(elsewhere.first())->site);
    diagnosis.evidence = {describe(elsewhere), describe(most)};
    return diagnosis;
  }
  RankSet grouping;
  RankSet others;
  RankSet messaging;
  for (const auto& [call, ranks] : by_op) {
    (is_about_groups(call) ? grouping : others).insert(ranks);
    messaging.insert(is_message(call) ? ranks : RankSet());
  }
  if (!grouping.empty() && grouping.size() < stacks.size()) {
    const bool are_few = grouping.size() < others.size();
    Diagnosis diagnosis =
        diagnosis_of(FindingKind::partial_subgroup, Confidence::low, are_few ? grouping : others);
    diagnosis.alternatives = {FindingKind::extra_collective};
    const std::string& call_of_groups = stacks.at(grouping.first())->op;
    set_op(call_of_groups, grouping, others, diagnosis);
    diagnosis.finding.headline = are_few ? fmt::format("{} in {}, and most ranks are not",
                                                       with_verb(grouping, "is", "are"), call_of_groups)
                                         : fmt::format("{} not in {}, which every rank has to call",
                                                       with_verb(others, "is", "are"), call_of_groups);
    diagnosis.finding.cause =
        fmt::format("{} in {} instead{}", with_verb(others, "is", "are"), stacks.at(others.first())->op,
                    are_few ? ": they made no such call, or named other ranks in it" : "");
    diagnosis.finding.advice = advice_on_new_group;
    diagnosis.evidence = {describe(grouping), describe(others)};
    return diagnosis;
  }
  if (messaging.size() == stacks.size()) {
    Diagnosis diagnosis = diagnosis_of(FindingKind::p2p_mismatch, Confidence::low, messaging);
    diagnosis.finding.tie = true;
    set_op(op, messaging, {}, diagnosis);
    diagnosis.finding.headline = fmt::format("{} all wait in messages", ranks_phrase(messaging));
    diagnosis.finding.cause = "each waits for another that waits as well";
    diagnosis.finding.advice = "let one side of each pair send first";
    diagnosis.evidence = {describe(messaging)};
    return diagnosis;
  }
  return std::nullopt;
}

// True if two stacks of a rank have the same functions at the same lines. py-spy and faulthandler name files
// differently, and either may leave out the outermost frames.
bool is_in_one_place(const LogFact& one, const LogFact& other) {
  const auto is_same = [](const std::string& a, const std::string& b) {
    const auto without_file = [](const std::string& frame) {
      return frame.substr(0, frame.find(" at ")) + frame.substr(frame.rfind(':'));
    };
    return without_file(a) == without_file(b);
  };
  const std::size_t depth = std::min(one.frames.size(), other.frames.size());
  return std::equal(one.frames.rbegin(), one.frames.rbegin() + static_cast<std::ptrdiff_t>(depth),
                    other.frames.rbegin(), is_same);
}

}  // namespace

std::optional<Diagnosis> judge_host_stacks(const std::vector<LogFact>& facts) {
  std::map<Rank, const LogFact*> first;
  RankSet seen_twice;
  for (const LogFact& fact : facts) {
    if (fact.kind == Kind::stack) {
      const auto [known, is_new] = first.emplace(fact.ranks.first(), &fact);
      if (is_new) {
        continue;
      }
      if (!is_in_one_place(*known->second, fact)) {
        return std::nullopt;  // the rank is at work
      }
      seen_twice.insert(fact.ranks);
    }
  }
  std::optional<Diagnosis> diagnosis = judge_calls_of_stacks(facts);
  diagnosis = diagnosis ? std::move(diagnosis) : judge_parting_stacks(facts);
  if (!diagnosis) {
    return std::nullopt;
  }
  if (seen_twice.size() == first.size()) {
    diagnosis->evidence.emplace_back("there are two stacks of each rank, and none has moved");
  } else {
    diagnosis->may_be_healthy = !log_shows_timeout(facts);
    diagnosis->would_settle.insert(
        diagnosis->would_settle.begin(),
        "the same stacks some seconds later: ranks that are only slower, or wait for what "
        "is on its way, have moved on");
  }
  return diagnosis;
}

}  // namespace rollcall::check
