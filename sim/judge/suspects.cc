#include "sim/judge/suspects.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <fmt/core.h>

#include "sim/judge/suspect_rules.h"
#include "sim/wording/phrasing.h"
#include "sim/wording/wording_host.h"
#include "sim/wording/wording_messages.h"
#include "sim/wording/wording_repair.h"

namespace rollcall::check {
namespace {

const RankProgram* program_of(const std::vector<RankProgram>& programs, Rank rank) {
  const auto found = std::ranges::find(programs, rank, &RankProgram::rank);
  return found == programs.end() ? nullptr : &*found;
}

// The ranks of a cycle that wait in the call `waits` and that the call `awaits` waits for.
RankSet closing(const Place& waits, const Place& awaits) {
  return intersection(waits.waiting, awaits.missing);
}

std::optional<Side> side_of(const std::vector<RankProgram>& programs, const RankSet& ranks,
                            const Call& place) {
  const RankProgram* program = program_of(programs, ranks.first());
  if (program == nullptr) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < program->calls.size(); ++i) {
    const ProgramCall& call = program->calls[i];
    const auto kind = parse_op_kind(place.op);
    if (kind && call.group == place.group && call.seq == place.seq &&
        count_of(call.kind) == count_of(*kind)) {
      const Calls all(program->calls);
      return Side{ranks, &call, all.subspan(0, i), all.subspan(i + 1)};
    }
  }
  return std::nullopt;
}

// ---- The verdicts ----

// The data is what the root sends: a rank that expects something else is wrong. The same goes for a receiver.
bool suspect_receivers(Mismatch& mismatch) {
  Finding& finding = mismatch.finding;
  const Call& first = mismatch.variants.front().call;
  RankSet receivers;
  if (first.op == "send" || first.op == "recv") {
    for (const Variant& variant : mismatch.variants) {
      if (variant.call.op == "recv") {
        receivers.insert(variant.ranks);
      }
    }
  } else {
    const bool agree = std::ranges::all_of(mismatch.variants, [&](const Variant& variant) {
      return variant.call.op == first.op && variant.call.root == first.root;
    });
    if (agree && (first.op == "broadcast" || first.op == "scatter") &&
        finding.culprits.contains(first.root)) {
      receivers = difference(finding.culprits, RankSet{first.root});
    }
  }
  if (receivers.empty()) {
    return false;
  }
  suspect(receivers, fmt::format("{} what is not sent", with_verb(receivers, "expects", "expect")), finding);
  return true;
}

// Nearly all programs make groups in ascending order: a rank that names the later group has left out the first.
bool suspect_later_groups(Mismatch& mismatch) {
  if (mismatch.variants.size() != 2 || mismatch.variants.front().call.ranks.empty()) {
    return false;
  }
  const auto first_of = [](const Variant& variant) { return std::atol(variant.call.ranks.c_str()); };
  const Variant& a = mismatch.variants[0];
  const Variant& b = mismatch.variants[1];
  if (first_of(a) == first_of(b)) {
    return false;
  }
  const Variant& later = first_of(a) > first_of(b) ? a : b;
  const Variant& sooner = first_of(a) > first_of(b) ? b : a;
  suspect(later.ranks,
          fmt::format("{} the group of {} without first making that of {}",
                      with_verb(later.ranks, "makes", "make"), later.call.ranks, sooner.call.ranks),
          mismatch.finding);
  return true;
}

void order_mismatch(Mismatch& mismatch, const std::vector<RankProgram>& programs) {
  Finding& finding = mismatch.finding;
  if (suspect_receivers(mismatch) || suspect_later_groups(mismatch) || mismatch.variants.size() != 2 ||
      !finding.at) {
    return;
  }
  const Call& call = finding.at->call;
  const auto a = side_of(programs, mismatch.variants[0].ranks, call);
  const auto b = side_of(programs, mismatch.variants[1].ranks, call);
  if (!a || !b) {
    return;
  }
  if (const Opinion opinion = opinion_on_mismatch(*a, *b); opinion.side != nullptr) {
    suspect(opinion.side->ranks, opinion.reason, finding);
  }
}

// The ranks that wait in the larger slot of the cycle without being part of the cycle.
RankSet bystanders(const Place& a, const Place& b) {
  const Place& large = a.waiting.size() > b.waiting.size() ? a : b;
  const Place& small = &large == &a ? b : a;
  return difference(large.waiting, closing(large, small));
}

// The earlier calls of a cycle's bystanders show which of its two calls comes first.
bool suspect_by_example(const std::vector<RankProgram>& programs, const Place& large, const Side& in_large,
                        const Side& in_small, const RankSet& others, Finding& finding) {
  const auto example = others.empty() ? std::nullopt : side_of(programs, others, large.call);
  if (!example || !came_by(*example, *in_small.call) || came_by(in_large, *in_small.call)) {
    return false;
  }
  suspect(
      in_large.ranks,
      fmt::format("{} {} without {}, which {} called first", with_verb(in_large.ranks, "reached", "reached"),
                  name_of(*in_large.call, *in_small.call), name_of(*in_small.call, *in_large.call),
                  ranks_phrase(others)),
      finding);
  return true;
}

// For a cycle of two calls. A longer cycle does not have two sides.
void order_cycle(Deadlock& deadlock, const std::vector<RankProgram>& programs) {
  Finding& finding = deadlock.finding;
  if (deadlock.cycle.size() != 2 || is_behind_sends(deadlock)) {
    return;
  }
  const bool swaps = deadlock.cycle[0].waiting.size() < deadlock.cycle[1].waiting.size();
  const Place& large = deadlock.cycle[swaps ? 1 : 0];
  const Place& small = deadlock.cycle[swaps ? 0 : 1];
  const bool is_even = large.waiting.size() == small.waiting.size();
  const auto in_large = side_of(programs, closing(large, small), large.call);
  const auto in_small = side_of(programs, closing(small, large), small.call);
  if (!in_large || !in_small) {
    return;
  }
  const auto suspect_few = [&](const Side& few, const Side& many) {
    suspect(few.ranks,
            fmt::format("{} in {}; more ranks wait in the other call", with_verb(few.ranks, "is", "are"),
                        name_of(*few.call, *many.call)),
            finding);
  };
  if (in_large->ranks.size() < in_small->ranks.size()) {
    suspect_few(*in_large, *in_small);
  } else if (in_small->ranks.size() < in_large->ranks.size()) {
    suspect_few(*in_small, *in_large);
  } else if (!is_even &&
             suspect_by_example(programs, large, *in_large, *in_small, bystanders(large, small), finding)) {
    // decided by what the bystanders did before
  } else if (const Opinion opinion = opinion_on_cycle(*in_large, *in_small); opinion.side != nullptr) {
    suspect(opinion.side->ranks, opinion.reason, finding);
  } else if (!is_even) {
    suspect_few(*in_small, *in_large);
  }
}

// Some ranks wait for a key, and the others wait for those ranks. If no program sets the key, that is the mistake.
void order_store_cycle(Deadlock& deadlock, const std::vector<RankProgram>& programs) {
  Finding& finding = deadlock.finding;
  const auto in_store =
      std::ranges::find_if(deadlock.cycle, [](const Place& place) { return !place.call.key.empty(); });
  const auto sets = [&](const RankProgram& program) {
    return std::ranges::find(program.sets, in_store->call.key) != program.sets.end();
  };
  const bool are_known = !programs.empty() && std::ranges::all_of(programs, &RankProgram::is_whole);
  if (!are_known || in_store == deadlock.cycle.end() || std::ranges::any_of(programs, sets)) {
    return;
  }
  finding.kind = FindingKind::store_never_served;
  if (finding.culprits == finding.at->missing) {
    return;  // the owners of the key: see key_owners.cc
  }
  blame_alone(in_store->waiting, finding);
  finding.at = *in_store;
  finding.on_backend = store_hang_on_backend();
  finding.headline = fmt::format("no rank sets key {}, which {} for", in_store->call.key,
                                 with_verb(in_store->waiting, "waits", "wait"));
  finding.cause = "the program of no other rank sets it, now or later";
  finding.advice = "let one rank set the key before any rank waits for it; check its spelling and its prefix";
}

// As many ranks wait in a call as ended without it. If the call is of a kind that the waiting ranks have not made
// before and carries hardly any data, they have left the common path; otherwise the others ended too early.
void order_missing(Deadlock& deadlock, const std::vector<RankProgram>& programs) {
  Finding& finding = deadlock.finding;
  const Place& place = *finding.at;
  const auto a = side_of(programs, place.waiting, place.call);
  if (!a || !is_on_own_path(*a)) {
    return;
  }
  finding.culprits.insert(place.waiting);
  finding.tie = true;
  suspect(place.waiting,
          fmt::format("{} is the first {} that any rank makes", name_of(*a->call), to_string(a->call->kind)),
          finding);
}

// True if half of the ranks are missing in a collective. Not for calls about groups, which every member has to make.
bool is_even_miss(const Finding& finding) {
  const auto kind = finding.at ? parse_op_kind(finding.at->call.op) : std::nullopt;
  return finding.kind == FindingKind::missing_participant && kind && count_of(*kind) == 0 &&
         finding.at->waiting.size() == finding.at->missing.size() && finding.culprits == finding.at->missing;
}

// Empty if there are too many to ask, or if a rank waits for several keys at once.
std::vector<Rank> ranks_outside_the_store(const std::vector<Place>& cycle) {
  constexpr std::size_t most_asked = 64;
  RankSet ranks;
  for (const Place& place : cycle) {
    if (place.call.key.empty()) {
      ranks.insert(place.waiting);
    }
  }
  const bool asks_each = std::ranges::none_of(
      cycle, [](const Place& place) { return place.call.key.find(", ") != std::string::npos; });
  return asks_each && ranks.size() <= most_asked ? ranks.to_vector() : std::vector<Rank>();
}

}  // namespace

void suspect(const RankSet& first, const std::string& reason, Finding& finding) {
  std::vector<Rank> others = finding.suspects.empty() ? finding.culprits.to_vector() : finding.suspects;
  std::erase_if(others, [&](Rank rank) { return first.contains(rank); });
  finding.suspects = first.to_vector();
  finding.suspects.insert(finding.suspects.end(), others.begin(), others.end());
  finding.suspicion = reason;
}

void blame_alone(const RankSet& ranks, Finding& finding) {
  finding.culprits = ranks;
  finding.tie = false;
  finding.suspects.clear();
  finding.suspicion.clear();
}

std::vector<Rank> ranks_to_compare(const Verdict& verdict) {
  if (const auto* mismatch = std::get_if<Mismatch>(&verdict)) {
    RankSet ranks;
    for (const Variant& variant : mismatch->variants) {
      ranks.insert(variant.ranks.first());
    }
    return mismatch->finding.tie && mismatch->variants.size() == 2 ? ranks.to_vector() : std::vector<Rank>();
  }
  const auto* deadlock = std::get_if<Deadlock>(&verdict);
  if (deadlock == nullptr) {
    return {};
  }
  RankSet ranks;
  const std::vector<Place>& cycle = deadlock->cycle;
  if (deadlock->finding.kind == FindingKind::store_cycle) {
    return ranks_outside_the_store(cycle);
  }
  if (cycle.size() == 2) {
    ranks = {closing(cycle[0], cycle[1]).first(), closing(cycle[1], cycle[0]).first()};
    if (const RankSet others = bystanders(cycle[0], cycle[1]); !others.empty()) {
      ranks.insert(others.first());
    }
  }
  if (is_even_miss(deadlock->finding)) {
    ranks.insert(deadlock->finding.at->waiting.first());
  }
  return ranks.to_vector();
}

void blame_for_left_out_call(Verdict& verdict, const std::vector<RankProgram>& programs) {
  auto* deadlock = std::get_if<Deadlock>(&verdict);
  if (deadlock == nullptr || deadlock->finding.kind != FindingKind::order_crossing ||
      deadlock->cycle.size() != 2) {
    return;
  }
  const std::vector<Place>& cycle = deadlock->cycle;
  for (const bool swaps : {false, true}) {
    const Place* const own = &cycle[swaps ? 1 : 0];
    const Place* const other = &cycle[swaps ? 0 : 1];
    const RankSet ranks = closing(*own, *other);
    const auto side = side_of(programs, ranks, own->call);
    const auto expected = side_of(programs, closing(*other, *own), other->call);
    const RankProgram* program = program_of(programs, ranks.first());
    if (ranks.size() != 1 || !side || !expected || !program->is_whole ||
        side_of(programs, ranks, other->call)) {
      continue;
    }
    Finding& finding = deadlock->finding;
    blame_alone(ranks, finding);
    const auto at = static_cast<std::int64_t>(side->before.size());
    word_culprits({CallEdit{.rank = ranks.first(), .at = at, .inserted = {*expected->call}}}, programs, cycle,
                  finding);
    return;
  }
}

void order_suspects(Verdict& verdict, const std::vector<RankProgram>& programs) {
  if (auto* mismatch = std::get_if<Mismatch>(&verdict); mismatch != nullptr && mismatch->finding.tie) {
    order_mismatch(*mismatch, programs);
  } else if (auto* deadlock = std::get_if<Deadlock>(&verdict)) {
    if (deadlock->finding.kind == FindingKind::store_cycle) {
      order_store_cycle(*deadlock, programs);
    } else if (!deadlock->cycle.empty()) {
      order_cycle(*deadlock, programs);
    } else if (is_even_miss(deadlock->finding)) {
      order_missing(*deadlock, programs);
    }
  }
}

}  // namespace rollcall::check
