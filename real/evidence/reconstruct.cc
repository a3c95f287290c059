#include "real/evidence/reconstruct.h"

#include <algorithm>

#include "real/evidence/evidence_builder.h"
#include "real/evidence/logged_outlook.h"
#include "sim/judge/complete.h"
#include "sim/judge/judge.h"
#include "sim/judge/order_warning.h"
#include "sim/match/wait_graph.h"

#include "sim/torch/torch_traits.h"

namespace rollcall::real {
namespace {

using Outlook = EvidenceBuilder::Outlook;
using State = check::RankStatus::State;

// How many times longer calls get to complete if their members disagree.
constexpr int doubtful_patience = 4;

bool any_waits(const check::Evidence& evidence) {
  return std::ranges::any_of(evidence.ranks,
                             [](const check::RankStatus& status) { return status.state == State::waiting; });
}

// False if ranks wait although all ranks have made their calls: then something happened that the evidence leaves out.
bool is_conclusive(const check::Evidence& evidence) {
  if (evidence.mismatch || evidence.device || evidence.limit || !any_waits(evidence)) {
    return true;
  }
  return !check::find_blame(evidence, check::blocked_slots(evidence)).slots.empty();
}

// The verdict is about what went wrong first, not about what the ranks noticed of it. So the log is judged first as if
// no rank had noticed, then as if dead ranks had not made their last calls, and as it was at the end only if
// neither explains why the others wait.
Verdict judge_log(const Options& options, const std::vector<GroupMembers>& groups, const RunLog& log) {
  const bool any_died =
      std::ranges::any_of(log.ranks, [](const RankLog& rank) { return rank.death.has_value(); });
  const EvidenceBuilder unnoticed(options, groups, log, {.until_noticed = true});
  const check::Evidence& evidence = unnoticed.evidence();
  if (evidence.mismatch || evidence.device || (!any_died && is_conclusive(evidence))) {
    return check::judge(evidence);
  }
  for (const Extent extent : {Extent{true, true}, Extent{false, true}, Extent{false, false}}) {
    const EvidenceBuilder replayed(options, groups, log, extent);
    if (is_conclusive(replayed.evidence())) {
      return check::judge(replayed.evidence());
    }
  }
  check::Evidence open = evidence;
  open.limit = unnoticed.limit();
  return check::judge(open);
}

std::vector<OutputLine> output_of(const RunLog& log) {
  std::vector<OutputLine> output;
  for (std::size_t rank = 0; rank < log.ranks.size(); ++rank) {
    for (const Record& record : log.ranks[rank].records) {
      const bool warns = record.kind == Record::Kind::warn;
      if (warns || record.kind == Record::Kind::print) {
        output.push_back({static_cast<Rank>(rank), record.at, warns, record.text});
      }
    }
  }
  return output;
}

}  // namespace

bool is_stuck(const Options& options, const std::vector<GroupMembers>& groups, const RunLog& log,
              Duration silence) {
  const EvidenceBuilder now(options, groups, log, {});
  const Outlook least =
      silence < doubtful_patience * options.patience ? Outlook::hopeless : Outlook::doubtful;
  return std::ranges::all_of(now.evidence().ranks, [&](const check::RankStatus& status) {
    return status.state == State::waiting ? now.outlook(status) <= least : status.state != State::running;
  });
}

Report reconstruct(const Options& options, const std::vector<GroupMembers>& groups, const RunLog& log) {
  EvidenceBuilder end(options, groups, log, {});
  Report report;
  report.world_size = options.world_size;
  report.backend = options.backend;
  report.torch = traits_of(options.torch).name;
  report.verdict = judge_log(options, groups, log);
  report.ranks = check::classify(end.evidence());
  report.output = output_of(log);
  report.simulated_time = log.end;
  report.measured = true;
  report.exhaustive = false;
  report.ops = end.calls();
  if (options.timeline) {
    report.timeline = end.take_timeline();
    for (const GroupMembers& group : end.groups()) {
      report.groups.push_back({group.name, RankSet::of(group.ranks)});
    }
  }
  report.samples = options.samples;
  const LoggedOutlook logged(end);
  if (end.groups().size() > 1) {
    check::warn_about_order(logged.orders(), report);
  }
  const check::Outlook& outlook = options.outlook != nullptr ? *options.outlook : logged;
  check::complete(report, outlook);
  return report;
}

}  // namespace rollcall::real
