#include "sim/judge/complete.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "sim/judge/complete_parts.h"
#include "sim/judge/suspects.h"
#include "sim/repair/repair.h"
#include "sim/wording/wording.h"
#include "sim/wording/wording_repair.h"

namespace rollcall::check {
namespace {

constexpr Rank compared_ranks_max = 1024;  // ranks whose programs are compared with all others'

std::vector<Place> waiting_places(const Verdict& verdict) {
  const auto* deadlock = std::get_if<Deadlock>(&verdict);
  if (deadlock == nullptr) {
    return {};
  }
  std::vector<Place> places = deadlock->cycle;
  if (deadlock->finding.at) {
    places.push_back(*deadlock->finding.at);
  }
  return places;
}

// The ranks that are likeliest by the evidence alone.
RankSet likeliest(const Finding& finding, std::size_t count) {
  if (finding.suspects.empty()) {
    return finding.tie ? RankSet() : finding.culprits;
  }
  std::vector<Rank> first = finding.suspects;
  first.resize(std::min(count, first.size()));
  return RankSet::of(first);
}

// Blames the ranks whose calls the repair changes.
void blame(const FoundRepair& repair, std::span<const RankProgram> programs, Verdict& verdict) {
  Finding& finding = *finding_of(verdict);
  blame_alone(repair.ranks, finding);
  if (!repair.alternatives.empty()) {
    finding.tie = true;
    finding.suspects = repair.ranks.to_vector();
    for (const Alternative& other : repair.alternatives) {
      const std::vector<Rank> more = difference(other.ranks, finding.culprits).to_vector();
      finding.suspects.insert(finding.suspects.end(), more.begin(), more.end());
      finding.culprits.insert(other.ranks);
    }
    return;
  }
  if (const auto* deadlock = std::get_if<Deadlock>(&verdict)) {
    if (deadlock->cycle.empty() && says_the_same(repair.edits, programs, finding)) {
      word_extra_headline(finding);
      return;  // the finding already names the missing call
    }
    word_culprits(repair.edits, programs, waiting_places(verdict), finding);
  } else if (const auto* mismatch = std::get_if<Mismatch>(&verdict); mismatch != nullptr && finding.at) {
    const auto own = std::ranges::find_if(
        mismatch->variants, [&](const Variant& variant) { return variant.ranks.contains(repair.ranks); });
    if (own != mismatch->variants.end()) {
      finding.at->call = own->call;
    }
  }
}

// True if the edits put another source in the place of one that a receive names, and the rank receives from anyone,
// too. Which message that takes is a matter of time, so one run shows nothing.
bool rests_on_order(const CallEdits& edits, std::span<const RankProgram> programs) {
  return std::ranges::any_of(edits, [&](const CallEdit& edit) {
    const auto names_source = [](const ProgramCall& call) {
      return call.kind == OpKind::recv && call.peer >= 0;
    };
    const std::vector<ProgramCall>& calls = programs[static_cast<std::size_t>(edit.rank)].calls;
    return std::ranges::any_of(edit.inserted, names_source) &&
           std::ranges::any_of(
               calls, [](const ProgramCall& call) { return call.kind == OpKind::recv && call.peer < 0; });
  });
}

// If the job repeats nothing, several repairs are equally good. Then the ranks that the evidence made likely decide:
// see the habits of real programs in suspect_rules.h.
void mend(const std::vector<RankProgram>& programs, const Outlook& outlook, Verdict& verdict) {
  const RepairSearch search = find_repair(verdict, programs, outlook);
  const std::optional<FoundRepair>& repair = search.found;
  Finding& finding = *finding_of(verdict);
  if (!repair) {
    if (search.tried > 0) {
      finding.repair =
          Repair{.tried = search.tried,
                 .search = search.is_cut_short ? Repair::Search::cut_short : Repair::Search::complete};
    }
    return;
  }
  const auto told = [&](const CallEdits& edits) {
    return Repair{repair_steps(edits, programs), static_cast<std::int64_t>(repair->alternatives.size()),
                  search.tried};
  };
  if (!repair->supported && !repair->alternatives.empty()) {
    const auto is_likely = [&](const RankSet& ranks) { return ranks == likeliest(finding, ranks.size()); };
    const auto other = std::ranges::find_if(repair->alternatives,
                                            [&](const Alternative& each) { return is_likely(each.ranks); });
    if (is_likely(repair->ranks) || other != repair->alternatives.end()) {
      const CallEdits& edits = is_likely(repair->ranks) ? repair->edits : other->edits;
      finding.repair = told(edits);
      return;
    }
  }
  if (finding.tie || finding.culprits != repair->ranks) {
    blame(*repair, programs, verdict);
  }
  if (!rests_on_order(repair->edits, programs)) {
    finding.repair = told(repair->edits);
  }
}

// Where the ranks part, a change is more natural than at the end, where the job hangs. Puts one in the place of the
// repair that was found, if the job gets through with it.
void mend_at_divergence(std::span<const RankProgram> programs, const Outlook& outlook, Finding& finding) {
  if (!finding.first_divergence || !finding.repair || finding.repair->steps.empty()) {
    return;
  }
  const Divergence& divergence = *finding.first_divergence;
  const auto is_there = [&](const ProgramCall& call) {
    return count_of(call.kind) == 0 && call.group == divergence.group && call.seq == divergence.seq;
  };
  const bool is_extra = finding.culprits == finding.at->waiting;
  CallEdits edits;
  std::vector<ProgramCall> expected;
  for (const RankProgram& program : programs) {
    const bool is_concerned = finding.culprits.contains(program.rank) ||
                              std::ranges::any_of(divergence.variants, [&](const Variant& variant) {
                                return variant.ranks.contains(program.rank);
                              });
    if (!is_concerned) {
      continue;
    }
    const auto at = std::ranges::find_if(program.calls, is_there);
    if (at == program.calls.end()) {
      return;
    }
    if (finding.culprits.contains(program.rank)) {
      edits.push_back({.rank = program.rank, .at = at - program.calls.begin(), .dropped = is_extra ? 1 : 0});
    } else if (!is_extra && expected.empty()) {
      expected = {*at};
    }
  }
  for (CallEdit& edit : edits) {
    edit.inserted = expected;
  }
  if (!edits.empty() && outlook.outcome_of(edits) == FindingKind::ok) {
    finding.repair->steps = repair_steps(edits, programs);
    ++finding.repair->tried;
  }
}

// A search has counted its failures by the kinds that the judge gave them first. The failure that the report shows may
// now have a more precise kind.
void rename_in_search(FindingKind before, Report& report) {
  const FindingKind now = kind_of(report.verdict);
  const Finding* shown = finding_of(report.verdict);
  if (!report.search || shown == nullptr || now == before) {
    return;
  }
  std::vector<Outcome> outcomes;
  for (Outcome outcome : report.search->outcomes) {
    outcome.kind = outcome.kind == before ? now : outcome.kind;
    add(outcome, outcomes);
  }
  report.search->outcomes = std::move(outcomes);
  const auto first = std::ranges::find(report.search->failures, before, &FoundFailure::kind);
  if (first != report.search->failures.end()) {
    first->headline = shown->headline;
    first->culprits = shown->culprits;
  }
  for (FoundFailure& failure : report.search->failures) {
    failure.kind = failure.kind == before ? now : failure.kind;
  }
}

}  // namespace

void complete(Report& report, const Outlook& outlook) {
  Verdict& verdict = report.verdict;
  const FindingKind before = kind_of(verdict);
  if (const std::vector<Rank> ranks = ranks_to_compare(verdict); !ranks.empty()) {
    const std::vector<RankProgram> programs = outlook.programs(ranks);
    order_suspects(verdict, programs);
    if (report.world_size > compared_ranks_max) {
      blame_for_left_out_call(verdict, programs);
    }
  }
  const bool mends = outlook.can_run_again() && is_repairable(verdict);
  if (mends && report.world_size > compared_ranks_max) {
    finding_of(verdict)->repair = Repair{.search = Repair::Search::too_large};
  }
  std::vector<RankProgram> programs;
  if (report.world_size <= compared_ranks_max && (mends || has_stuck_messages(verdict))) {
    programs = outlook.programs(RankSet::range(0, report.world_size - 1).to_vector());
    if (has_stuck_messages(verdict)) {
      find_wrong_peer(verdict, programs);
    }
    if (mends && std::ranges::any_of(programs, &RankProgram::is_endless)) {
      finding_of(verdict)->repair = Repair{.search = Repair::Search::too_large};
    } else if (mends && static_cast<Rank>(programs.size()) == report.world_size) {  // all call something
      mend(programs, outlook, verdict);
      Finding& finding = *finding_of(verdict);
      if (finding.repair) {
        finding.repair->is_partial = !std::ranges::all_of(programs, &RankProgram::is_whole);
      }
    }
  }
  if (report.world_size <= compared_ranks_max && has_unexplained_endings(verdict)) {
    explain_endings(outlook, verdict);
    if (mends) {
      mend_at_divergence(programs, outlook, *finding_of(verdict));
    }
  }
  add_hook_diff(outlook, verdict);
  if (report.samples && std::holds_alternative<Completed>(verdict)) {
    verdict = judge_samples(*report.samples).value_or(verdict);
  }
  rename_in_search(before, report);
}

}  // namespace rollcall::check
