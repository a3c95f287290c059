// Ranks that report nothing, while others say that they waited.

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <fmt/core.h>

#include "sim/diagnose/dump_ops.h"
#include "sim/diagnose/error_advice.h"
#include "sim/diagnose/log_ranks.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

namespace {

using Kind = LogFact::Kind;

// For ranks that all waited until they gave up, but not all in the same call.
std::optional<Diagnosis> judge_different_calls(const std::vector<LogFact>& facts, const RankSet& failed) {
  std::map<std::string, RankSet> by_op;
  std::map<Rank, const LogFact*> calls;
  for (const LogFact& fact : facts) {
    const bool has_failed = fact.kind == Kind::lost_peer || fact.kind == Kind::gave_up;
    if (has_failed && calls.emplace(fact.ranks.first(), &fact).second) {
      by_op[fact.op].insert(fact.ranks);
    }
  }
  const bool is_known = std::ranges::none_of(by_op, [](const auto& entry) {
    return entry.first.empty() || is_message(entry.first) || is_about_groups(entry.first);
  });
  if (!is_known || by_op.size() < 2) {
    return std::nullopt;
  }
  const auto most =
      std::ranges::max_element(by_op, {}, [](const auto& entry) { return entry.second.size(); });
  const RankSet odd = difference(failed, most->second);
  if (odd.size() >= most->second.size()) {
    return std::nullopt;
  }
  const LogFact& theirs = *calls.at(odd.first());
  const LogFact& usual = *calls.at(most->second.first());
  // A call with a root ends for some ranks while others wait in it, so whoever is elsewhere may be right.
  const bool has_roots = std::ranges::any_of(by_op, [](const auto& entry) { return has_root(entry.first); });
  Diagnosis diagnosis =
      diagnosis_of(FindingKind::op_type_mismatch, has_roots ? Confidence::low : Confidence::medium, odd);
  diagnosis.alternatives = {FindingKind::skipped_collective, FindingKind::extra_collective};
  set_op(most->first, most->second, {}, diagnosis);
  diagnosis.finding.headline =
      fmt::format("{} waited in {}, the others in {}", ranks_phrase(odd), theirs.op, most->first);
  diagnosis.finding.cause = "calls that do not belong together met, and none of them finished";
  diagnosis.finding.advice = "look for a branch around a collective that depends on the rank";
  for (const LogFact* fact : {&theirs, &usual}) {
    diagnosis.evidence.push_back(fmt::format("{}: {} gave up in {}{}", fact->place(),
                                             ranks_phrase(fact->ranks), fact->op,
                                             fact->site.empty() ? "" : " at " + fact->site));
  }
  diagnosis.would_settle.push_back(dumps_would_say);
  return diagnosis;
}

// For ranks whose last error looked as if they had survived it, and for which the others waited.
Diagnosis logged_before_others_failed(const LogFact& error, const RankSet& ranks, const RankSet& failed) {
  Diagnosis diagnosis = diagnosis_of(FindingKind::crashed_rank, Confidence::low, ranks);
  diagnosis.alternatives = {FindingKind::stuck_host};
  diagnosis.finding.headline =
      fmt::format("{} logged an error, and {} for {}", ranks_phrase(ranks),
                  with_verb(failed, "waited", "waited"), is_plural(ranks) ? "them" : "it");
  diagnosis.finding.cause = error.text;
  diagnosis.finding.advice = advice_on_error(error.text);
  diagnosis.evidence.push_back(error_evidence(error));
  return diagnosis;
}

}  // namespace

// Ranks that waited say so when they, or others, give up; a rank that did not make the call has nothing to report.
std::optional<Diagnosis> judge_silence(const std::vector<LogFact>& facts) {
  const RankSet failed = ranks_with(facts, {Kind::lost_peer, Kind::gave_up});
  RankSet known = ranks_with(facts, Kind::wrote);
  const bool is_launchers =  // of one process: the others are not silent
      known.empty() && !failed.empty() && ranks_with(facts, Kind::first_to_fail).contains(failed);
  if (failed.empty() || is_launchers || first_of(facts, Kind::repeated) != nullptr) {
    return std::nullopt;
  }
  known.insert(RankSet::range(0, failed.ranges().back().last));
  const auto op_of = [&facts](Rank rank) -> const LogFact* {
    const auto place = std::ranges::find_if(facts, [rank](const LogFact& fact) {
      return (fact.kind == Kind::lost_peer || fact.kind == Kind::gave_up) && fact.ranks.contains(rank);
    });
    return place == facts.end() ? nullptr : &*place;
  };
  // Where ranks gave up waiting, those that lost a peer may have lost one of these.
  const bool is_gone = ranks_with(facts, Kind::gave_up).empty();
  RankSet silent = difference(difference(known, failed), ranks_with(facts, Kind::named_missing));
  if (is_gone) {
    silent = difference(silent, ranks_with(facts, Kind::outlived));
  }
  const LogFact& shown = *op_of(failed.first());
  if (!silent.empty() && ranks_with(facts, Kind::logged).contains(silent)) {
    return logged_before_others_failed(*first_of(facts, Kind::logged), silent, failed);
  }
  if (silent.empty()) {
    if (!std::ranges::all_of(failed.to_vector(), [&](Rank rank) { return is_message(op_of(rank)->op); })) {
      return judge_different_calls(facts, failed);
    }
    Diagnosis diagnosis = diagnosis_of(FindingKind::p2p_mismatch, Confidence::low, failed);
    diagnosis.finding.tie = true;
    set_op(shown.op, failed, {}, diagnosis);
    diagnosis.finding.headline = fmt::format("{} waited in messages until the timeout", ranks_phrase(failed));
    diagnosis.finding.cause =
        fmt::format("no rank was left to answer: {} in {}", ranks_phrase({failed.first()}), shown.op);
    diagnosis.finding.advice = "post one recv for every send; let one side of each pair send first";
    diagnosis.evidence.push_back(fmt::format("{}: {}", shown.place(), shown.text));
    return diagnosis;
  }
  if (silent.size() >= failed.size() + (is_gone ? 0 : 1)) {
    return std::nullopt;
  }
  // A rank that waits without a timeout of its own is silent, too, and so is one that its launcher ended while it
  // waited. If the others waited in different calls, it may be a victim like them.
  std::set<std::string> calls;
  for (const Rank rank : failed.to_vector()) {
    calls.insert(op_of(rank)->op + " at " + op_of(rank)->site);
  }
  const bool may_have_waited = calls.size() > 1 && ranks_with(facts, Kind::outlived).contains(silent);
  const Confidence confidence =
      silent.size() >= failed.size() || may_have_waited ? Confidence::low : Confidence::medium;
  Diagnosis diagnosis =
      diagnosis_of(is_gone ? FindingKind::crashed_rank : FindingKind::stuck_host, confidence, silent);
  diagnosis.alternatives = {is_gone ? FindingKind::stuck_host : FindingKind::crashed_rank,
                            FindingKind::early_exit};
  set_op(shown.op, failed, silent, diagnosis);
  diagnosis.finding.headline =
      fmt::format("{} no error, and {} for {}", with_verb(silent, "reports", "report"),
                  with_verb(failed, "waited", "waited"), is_plural(silent) ? "them" : "it");
  diagnosis.finding.cause =
      is_gone ? fmt::format(
                    "{} exited or {} killed silently; or {} did not arrive, and those that waited "
                    "ended each other",
                    is_plural(silent) ? "their processes" : "its process", is_plural(silent) ? "were" : "was",
                    is_plural(silent) ? "they" : "it")
              : fmt::format("{} did not reach the call in which the others timed out",
                            is_plural(silent) ? "they" : "it");
  diagnosis.finding.advice =
      fmt::format("check what {} did instead: its stack (py-spy dump), the kernel's log for a kill",
                  ranks_phrase(silent));
  diagnosis.evidence.push_back(error_evidence(shown));
  diagnosis.would_settle.push_back(dumps_would_say);
  return diagnosis;
}

}  // namespace rollcall::check
