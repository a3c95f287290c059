#include "sim/judge/complete.h"

#include <numeric>
#include <vector>

#include "sim/judge/endings.h"
#include "sim/judge/hook_diff.h"
#include "sim/judge/judge_samples.h"
#include "sim/judge/suspects.h"
#include "sim/judge/wrong_peer.h"

namespace rollcall::check {
namespace {

constexpr Rank compared_ranks_max = 256;  // ranks whose programs are compared with all others'

}  // namespace

void complete(Report& report, const Outlook& outlook) {
  Verdict& verdict = report.verdict;
  if (const std::vector<Rank> ranks = ranks_to_compare(verdict); !ranks.empty()) {
    order_suspects(verdict, outlook.programs(ranks));
  }
  if (report.world_size <= compared_ranks_max && has_stuck_messages(verdict)) {
    std::vector<Rank> everyone(static_cast<std::size_t>(report.world_size));
    std::iota(everyone.begin(), everyone.end(), 0);
    find_wrong_peer(verdict, outlook.programs(everyone));
  }
  if (report.world_size <= compared_ranks_max && has_unexplained_endings(verdict)) {
    explain_endings(outlook, verdict);
  }
  add_hook_diff(outlook, verdict);
  if (report.samples && std::holds_alternative<Completed>(verdict)) {
    verdict = judge_samples(*report.samples).value_or(verdict);
  }
}

}  // namespace rollcall::check
