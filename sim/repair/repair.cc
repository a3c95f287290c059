#include "sim/repair/repair.h"

#include <algorithm>
#include <optional>

#include "sim/repair/call_numbers.h"
#include "sim/repair/novelty.h"
#include "sim/repair/proposals.h"
#include "sim/report/blame.h"
#include "sim/wording/wording_messages.h"

namespace rollcall::check {
namespace {

constexpr std::int64_t margin = 4;  // between scores of changes that are about as likely, without support
constexpr std::size_t tries_max = 48;
constexpr std::size_t calls_max = 2'000'000;  // in all runs that are tried
constexpr std::size_t tries_min = 4;

struct Scored {
  Proposal proposal;
  std::int64_t score = 0;
  bool supported = false;  // by other steps, or by other peers
};

// The places of `rank`'s calls with these edits, some of which may be of other ranks.
std::vector<Symbol> places_with(const CallLists& lists, Rank rank, const CallEdits& edits) {
  const CallList& own = lists.of(rank);
  std::vector<Symbol> result;
  Places places;
  std::size_t next = 0;
  const auto copy_until = [&](std::size_t end) {
    for (; next < std::min(end, own.calls.size()); ++next) {
      result.push_back(places.next(own.calls[next]));
    }
  };
  for (const CallEdit& edit : edits_of(edits, rank)) {
    copy_until(static_cast<std::size_t>(edit.at));
    for (const ProgramCall& call : edit.inserted) {
      result.push_back(places.next(lists.listed(rank, call)));
    }
    next += static_cast<std::size_t>(edit.dropped);
  }
  copy_until(own.calls.size());
  return result;
}

std::int64_t novelty_of(const CallLists& lists, const Proposal& proposal, Novelty& novelty) {
  std::vector<Novelty::Change> changes;
  for (const Rank rank : proposal.ranks) {
    Novelty::Change change{rank, places_with(lists, rank, proposal.edits)};
    if (!changes.empty() && lists.call_alike(changes.back().rank, rank) &&
        changes.back().places == change.places) {
      ++changes.back().ranks;
    } else {
      changes.push_back(std::move(change));
    }
  }
  return novelty.count_with(changes);
}

// Moves edits of one call each to an earlier place in the rank's list where the job would be more regular: a missing
// call shows only later, when another rank waits for it.
void slide(const CallLists& lists, Proposal& proposal, Novelty& novelty) {
  constexpr std::int64_t places_max = 64;
  constexpr std::size_t edits_max = 8;
  if (proposal.edits.size() > edits_max) {
    return;
  }
  for (CallEdit& edit : proposal.edits) {
    if (edit.inserted.size() + static_cast<std::size_t>(edit.dropped) != 1) {
      return;
    }
    const std::vector<ListedCall>& calls = lists.of(edit.rank).calls;
    const Proposal own{.edits = {edit}, .ranks = {edit.rank}};
    std::int64_t best = novelty_of(lists, own, novelty);
    CallEdit chosen = edit;
    for (std::int64_t at = edit.at - 1; at >= std::max<std::int64_t>(0, edit.at - places_max); --at) {
      const ListedCall& here = calls[static_cast<std::size_t>(at)];
      if (edit.dropped == 1 && here.place != calls[static_cast<std::size_t>(edit.at)].place) {
        continue;
      }
      Proposal other = own;
      other.edits.front().at = at;
      if (const std::int64_t count = novelty_of(lists, other, novelty); count < best) {
        best = count;
        chosen = other.edits.front();
      }
    }
    edit = chosen;
  }
  sort_edits(proposal.edits);
}

// Calls are made on purpose: they are forgotten more often than added by mistake.
std::int64_t left_out(const Proposal& proposal) {
  constexpr std::int64_t first = 2;
  constexpr std::int64_t more = 4;
  std::int64_t calls = 0;
  for (const CallEdit& edit : proposal.edits) {
    calls += std::max<std::int64_t>(0, edit.dropped - static_cast<std::int64_t>(edit.inserted.size()));
  }
  return calls == 0 ? 0 : first + std::min(calls - 1, more);
}

// True if the calls at the edits, and after them, also occur elsewhere in the job, and not only on the other end of the
// mistake. In a job of two ranks and one step, none do.
bool is_supported(const CallLists& lists, const Proposal& proposal, const Novelty& novelty) {
  const auto enough = static_cast<std::int64_t>(proposal.ranks.size()) + 1;  // themselves, and the other end
  const auto replaces = [](const CallEdit& edit) {
    return edit.dropped == static_cast<std::int64_t>(edit.inserted.size());
  };
  if (static_cast<std::int64_t>(proposal.witnesses) > enough &&
      std::ranges::all_of(proposal.edits, replaces)) {
    return true;
  }
  std::optional<Rank> last;
  return std::ranges::any_of(proposal.edits, [&](const CallEdit& edit) {
    if (last == edit.rank) {
      return false;  // a rank's first edit represents the others, which are like it
    }
    last = edit.rank;
    const std::vector<Symbol> places = places_with(lists, edit.rank, proposal.edits);
    // The beginning and the end of a list are not evidence.
    const auto follows = [&](std::int64_t at) {
      return at > 0 && at < static_cast<std::int64_t>(places.size()) &&
             novelty.times(places[static_cast<std::size_t>(at) - 1], places[static_cast<std::size_t>(at)]) >
                 enough;
    };
    return follows(edit.at) ||
           (!edit.inserted.empty() && follows(edit.at + static_cast<std::int64_t>(edit.inserted.size())));
  });
}

std::vector<Scored> ordered(const CallLists& lists, const Hang& hang) {
  Novelty novelty(lists);
  const CallNumbers numbers(lists);
  std::vector<Scored> all;
  std::vector<Proposal> proposals = as_peers_do(lists);
  for (Proposal& proposal : where_it_hangs(lists, hang)) {
    Proposal moved = proposal;
    slide(lists, moved, novelty);
    proposals.push_back(std::move(moved));
    proposals.push_back(std::move(proposal));
  }
  for (Proposal& proposal : proposals) {
    const auto ranks = static_cast<std::int64_t>(proposal.ranks.size());
    const auto kinds = static_cast<std::int64_t>(proposal.kinds);
    const std::int64_t has_witnesses = proposal.witnesses > 0 ? 1 : 0;
    const std::int64_t news = novelty_of(lists, proposal, novelty) - novelty.count();
    const bool has_numbers = numbers.become_usual(proposal.edits);
    const bool supported = has_numbers || is_supported(lists, proposal, novelty);
    const std::int64_t likeness = supported ? news : std::max<std::int64_t>(0, news);
    const std::int64_t omission = has_numbers ? 0 : left_out(proposal);
    const std::int64_t score = 3 * ranks + 2 * kinds + omission - has_witnesses + 2 * likeness;
    all.push_back({std::move(proposal), score, supported});
  }
  std::ranges::stable_sort(all, {}, &Scored::score);
  return all;
}

// True if all ranks finish, in calls that agree. Values no longer count: they are not the program's any more.
bool is_well(FindingKind kind) {
  return kind == FindingKind::ok || kind == FindingKind::value || kind == FindingKind::group_not_destroyed ||
         kind == FindingKind::samples_repeated || kind == FindingKind::work_never_waited ||
         kind == FindingKind::drop_before_wait;
}

bool is_known(const FoundRepair& found, const RankSet& ranks) {
  return found.ranks == ranks ||
         std::ranges::find(found.alternatives, ranks, &Alternative::ranks) != found.alternatives.end();
}

// True if a rank would leave out its part of a call in which all ranks meet as they should, if with other arguments.
// Where a recording ends there, nothing shows that the others would miss it.
bool leaves_out_met_call(const Hang& hang, const CallEdits& edits) {
  const auto leaves_out = [&hang](const CallEdit& edit) {
    return edit.inserted.empty() && std::ranges::any_of(hang.variants, [&edit](const CallsAt& calls) {
             const auto found = calls.find(edit.rank);
             const auto at = found == calls.end() ? -1 : static_cast<std::int64_t>(found->second);
             return edit.at <= at && at < edit.at + edit.dropped;
           });
  };
  return hang.is_of_one_statement && std::ranges::any_of(edits, leaves_out);
}

// True if a rank would make the others' call before its own, which is theirs with other arguments. Where a recording
// ends there, nothing shows that nobody would come to its own.
bool comes_before_met_call(const CallLists& lists, const Hang& hang, const CallEdits& edits) {
  const auto comes_before = [&](const CallEdit& edit) {
    if (edit.dropped > 0 || edit.inserted.empty()) {
      return false;
    }
    const auto own = std::ranges::find_if(hang.variants, [&edit](const CallsAt& calls) {
      const auto found = calls.find(edit.rank);
      return found != calls.end() && static_cast<std::int64_t>(found->second) == edit.at;
    });
    return own != hang.variants.end() && std::ranges::any_of(hang.variants, [&](const CallsAt& theirs) {
             return &theirs != &*own && !theirs.empty() &&
                    is_theirs_otherwise(lists, edit.rank, own->at(edit.rank), theirs.begin()->first,
                                        theirs.begin()->second);
           });
  };
  return hang.is_of_one_statement && std::ranges::any_of(edits, comes_before);
}

bool is_about_hosts(const Place& place) {
  const auto kind = parse_op_kind(place.call.op);
  return kind && (is_about_groups(*kind) || is_about_store(*kind));
}

}  // namespace

bool is_repairable(const Verdict& verdict) {
  const auto* deadlock = std::get_if<Deadlock>(&verdict);
  if (deadlock != nullptr && std::ranges::any_of(deadlock->cycle, is_about_hosts)) {
    return false;  // calls about groups and the store are not edited, so only half of the changes could be tried
  }
  if (deadlock != nullptr && is_behind_sends(*deadlock)) {
    return false;
  }
  return is_inferred_from_calls(verdict);
}

RepairSearch find_repair(const CallLists& lists, const Hang& hang, const Outlook& outlook) {
  RepairSearch search;
  std::optional<FoundRepair>& found = search.found;
  const auto most_tries = static_cast<std::int64_t>(
      std::clamp(calls_max / std::max<std::size_t>(1, lists.calls()), tries_min, tries_max));
  std::vector<CallEdits> tried;
  for (const Scored& each : ordered(lists, hang)) {
    if (found && each.score > found->score + (found->supported ? 0 : margin)) {
      break;
    }
    const RankSet ranks = RankSet::of(each.proposal.ranks);
    if (leaves_out_met_call(hang, each.proposal.edits) ||
        comes_before_met_call(lists, hang, each.proposal.edits) || (found && is_known(*found, ranks)) ||
        std::ranges::find(tried, each.proposal.edits) != tried.end()) {
      continue;
    }
    if (search.tried == most_tries) {
      search.is_cut_short = true;
      break;
    }
    tried.push_back(each.proposal.edits);
    ++search.tried;
    const std::optional<FindingKind> outcome = outlook.outcome_of(each.proposal.edits);
    if (!outcome || !is_well(*outcome)) {
      continue;
    }
    if (!found) {
      found = FoundRepair{
          .edits = each.proposal.edits, .ranks = ranks, .score = each.score, .supported = each.supported};
    } else {
      found->alternatives.push_back({each.proposal.edits, ranks});
    }
  }
  return search;
}

RepairSearch find_repair(const Verdict& verdict, const std::vector<RankProgram>& programs,
                         const Outlook& outlook) {
  const bool joins = std::ranges::any_of(programs, [](const RankProgram& program) {
    return std::ranges::any_of(program.calls, [](const ProgramCall& call) {
      return call.shadow || call.label.find("join.") != std::string::npos;
    });
  });
  if (joins) {
    return {};  // there, the number of a rank's calls depends on the others
  }
  const CallLists lists(programs);
  return find_repair(lists, hang_of(lists, verdict), outlook);
}

}  // namespace rollcall::check
