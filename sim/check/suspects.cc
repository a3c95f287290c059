#include "sim/check/suspects.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "sim/check/phrasing.h"

namespace rollcall::check {
namespace {

// Elements that a flag, a count or a name takes, and that no gradient or activation does.
constexpr std::int64_t most_of_a_vote = 4;
constexpr std::int64_t most_of_a_message = 64;

using Calls = std::span<const ProgramCall>;

bool are_alike(const ProgramCall& a, const ProgramCall& b) {
  if (a.group != b.group || a.kind != b.kind) {
    return false;
  }
  return a.label.empty() && b.label.empty() ? a.numel == b.numel && a.dtype == b.dtype : a.label == b.label;
}

bool contains(Calls calls, const ProgramCall& call) {
  return std::ranges::any_of(calls, [&](const ProgramCall& other) { return are_alike(call, other); });
}

bool has_kind(Calls calls, OpKind kind) {
  return std::ranges::any_of(calls, [kind](const ProgramCall& call) { return call.kind == kind; });
}

std::string name_of(const ProgramCall& call) {
  return std::string(to_string(call.kind)) + (call.label.empty() ? "" : " in " + call.label);
}

// One side of a disagreement: some ranks, the call they are in, and the program of one of them around it.
struct Side {
  RankSet ranks;
  const ProgramCall* call = nullptr;
  Calls before;
  Calls after;
};

// The side that is at fault, and why.
struct Opinion {
  const Side* side = nullptr;
  std::string reason;
};

const RankProgram* program_of(const std::vector<RankProgram>& programs, Rank rank) {
  const auto found = std::ranges::find(programs, rank, &RankProgram::rank);
  return found == programs.end() ? nullptr : &*found;
}

// Calls of different channels of a group are counted apart: collectives, messages, and each kind of call that
// makes or ends groups.
int channel_of(OpKind kind) {
  if (is_about_groups(kind)) {
    return 2 + static_cast<int>(kind);
  }
  return is_point_to_point(kind) ? 1 : 0;
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
        channel_of(call.kind) == channel_of(*kind)) {
      const Calls all(program->calls);
      return Side{ranks, &call, all.subspan(0, i), all.subspan(i + 1)};
    }
  }
  return std::nullopt;
}

using Rule = Opinion (*)(const Side& a, const Side& b);

// ---- Rules about two sides that met with different calls. Each asks about `a`; both orders are tried. ----

// A vote that every step begins with, where the other is still in the step: a has skipped something.
Opinion votes_early(const Side& a, const Side& b) {
  const bool votes = a.call->numel <= most_of_a_vote && a.call->kind != OpKind::barrier;
  if (votes && contains(a.before, *a.call) && !contains(b.before, *b.call)) {
    return {&a, fmt::format("{} again at {}, which begins every step, and left out {}",
                            with_verb(a.ranks, "is", "are"), name_of(*a.call), name_of(*b.call))};
  }
  return {};
}

// A kind of call that was not made before, and that carries hardly anything: a is on a path of its own.
Opinion takes_own_path(const Side& a, const Side& b) {
  const bool is_new = !a.before.empty() && !has_kind(a.before, a.call->kind);
  if (a.call->kind != b.call->kind && is_new && has_kind(b.before, b.call->kind) &&
      a.call->numel <= most_of_a_message) {
    return {&a,
            fmt::format("{} on a path of {} own: nobody made a {} before", with_verb(a.ranks, "is", "are"),
                        is_plural(a.ranks) ? "their" : "its", to_string(a.call->kind))};
  }
  return {};
}

// b waits in a barrier for a to get there, and a does something else first.
Opinion keeps_barrier_waiting(const Side& a, const Side& b) {
  if (b.call->kind == OpKind::barrier && contains(a.after, *b.call) && !contains(b.after, *a.call)) {
    return {&a, fmt::format("{} {} before the barrier that the others are in",
                            with_verb(a.ranks, "makes", "make"), name_of(*a.call))};
  }
  return {};
}

// b still comes to a's call, and a never to b's: a has left something out.
Opinion is_ahead(const Side& a, const Side& b) {
  if (contains(b.after, *a.call) && !contains(a.after, *b.call)) {
    return {&a, fmt::format("{} ahead: {} {} without {}", with_verb(a.ranks, "is", "are"),
                            is_plural(a.ranks) ? "they came to" : "it came to", name_of(*a.call),
                            name_of(*b.call))};
  }
  return {};
}

// a repeats what it did before, b is at something new: a went round its loop without it.
Opinion went_round(const Side& a, const Side& b) {
  if (contains(a.before, *a.call) && !contains(b.before, *b.call)) {
    return {&a, fmt::format("{} {} without {}", with_verb(a.ranks, "repeats", "repeat"), name_of(*a.call),
                            name_of(*b.call))};
  }
  return {};
}

// Values are promoted to wider types by accident, hardly ever to narrower ones.
Opinion is_wider(const Side& a, const Side& b) {
  const auto width = [](const ProgramCall& call) {
    const auto dtype = parse_dtype(call.dtype);
    return dtype ? size_of(*dtype) : 0;
  };
  if (a.call->kind == b.call->kind && a.call->numel == b.call->numel && width(*a.call) > width(*b.call)) {
    return {&a, fmt::format("{} the wider type, as promotion does", with_verb(a.ranks, "has", "have"))};
  }
  return {};
}

// ---- Rules about two sides that wait for each other ----

// Only a waits in a message: the other is in a call that everyone makes.
Opinion is_in_message(const Side& a, const Side& b) {
  if (is_point_to_point(a.call->kind) && !is_point_to_point(b.call->kind)) {
    return {&a, fmt::format("{} {} that has no other end", with_verb(a.ranks, "waits in", "wait in"),
                            is_plural(a.ranks) ? "messages" : "a message")};
  }
  return {};
}

// b never comes to a's call, while a would come to b's: a makes a call too many.
Opinion makes_extra_call(const Side& a, const Side& b) {
  if (!contains(b.after, *a.call) && contains(a.after, *b.call)) {
    return {&a, fmt::format("{} alone in {}: it is in no other rank's program here",
                            with_verb(a.ranks, "is", "are"), name_of(*a.call))};
  }
  return {};
}

// The number that a label ends in: "grads_s2" is of step 2.
std::optional<std::int64_t> step_of(std::string_view label) {
  std::size_t begin = label.size();
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(label[begin - 1])) != 0) {
    --begin;
  }
  constexpr std::size_t most_digits = 9;
  if (begin == label.size() || label.size() - begin > most_digits) {
    return std::nullopt;
  }
  return std::stoll(std::string(label.substr(begin)));
}

// By the numbers in their labels, a is in a later step than b.
Opinion is_in_later_step(const Side& a, const Side& b) {
  const auto mine = step_of(a.call->label);
  const auto other = step_of(b.call->label);
  if (mine && other && *mine > *other) {
    return {&a, fmt::format("{} already in {}, the others are still in {}", with_verb(a.ranks, "is", "are"),
                            a.call->label, b.call->label)};
  }
  return {};
}

constexpr Rule mismatch_rules[] = {votes_early, takes_own_path, keeps_barrier_waiting,
                                   is_ahead,    went_round,     is_wider};
// b makes or ends a group, which is every member's duty, and a does something else.
Opinion shirks_group_call(const Side& a, const Side& b) {
  if (is_about_groups(b.call->kind) && !is_about_groups(a.call->kind)) {
    return {&a, fmt::format("{} come to {}, which every member has to call",
                            with_verb(a.ranks, "does not", "do not"), name_of(*b.call))};
  }
  return {};
}

constexpr Rule circle_rules[] = {is_in_message, shirks_group_call, makes_extra_call, is_in_later_step};

Opinion ask(std::span<const Rule> rules, const Side& a, const Side& b) {
  for (const Rule rule : rules) {
    const Opinion about_a = rule(a, b);
    const Opinion about_b = rule(b, a);
    if ((about_a.side != nullptr) != (about_b.side != nullptr)) {
      return about_a.side != nullptr ? about_a : about_b;
    }
  }
  return {};
}

void suspect(const RankSet& first, const std::string& reason, Finding& finding) {
  finding.suspects = first.to_vector();
  for (const Rank rank : difference(finding.culprits, first).to_vector()) {
    finding.suspects.push_back(rank);
  }
  finding.suspicion = reason;
}

bool is_message_op(const std::string& op) { return op == "send" || op == "recv"; }

// ---- The verdicts ----

// What the root sends is what there is: whoever expects something else is wrong. So is a receiver.
bool suspect_receivers(Mismatch& mismatch) {
  Finding& finding = mismatch.finding;
  const Call& first = mismatch.variants.front().call;
  RankSet receivers;
  if (is_message_op(first.op)) {
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

// Groups are made in ascending order nearly everywhere: whoever names the later one has left out the first.
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
          fmt::format("{} the group of {} without the one of {}, which comes before it",
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
  if (const Opinion opinion = ask(mismatch_rules, *a, *b); opinion.side != nullptr) {
    suspect(opinion.side->ranks, opinion.reason, finding);
  }
}

// A circle of two calls. More of them have no two sides.
void order_circle(Deadlock& deadlock, const std::vector<RankProgram>& programs) {
  Finding& finding = deadlock.finding;
  if (deadlock.circle.size() != 2) {
    return;
  }
  const auto side_at = [&](const Place& place) { return side_of(programs, place.waiting, place.call); };
  const auto a = side_at(deadlock.circle[0]);
  const auto b = side_at(deadlock.circle[1]);
  if (!a || !b) {
    return;
  }
  if (a->ranks.size() != b->ranks.size()) {
    const Side& few = a->ranks.size() < b->ranks.size() ? *a : *b;
    suspect(few.ranks,
            fmt::format("{} in {}, more ranks wait in the other call", with_verb(few.ranks, "is", "are"),
                        name_of(*few.call)),
            finding);
    return;
  }
  if (const Opinion opinion = ask(circle_rules, *a, *b); opinion.side != nullptr) {
    suspect(opinion.side->ranks, opinion.reason, finding);
  }
}

// As many ranks wait in a call as ended without it. If the call is of a kind that nobody made before and carries
// hardly anything, those that make it have left the common path; otherwise the others left too early.
void order_missing(Deadlock& deadlock, const std::vector<RankProgram>& programs) {
  Finding& finding = deadlock.finding;
  const Place& place = *finding.at;
  const auto a = side_of(programs, place.waiting, place.call);
  if (!a || a->before.empty() || has_kind(a->before, a->call->kind) || a->call->numel > most_of_a_message) {
    return;
  }
  finding.culprits.insert(place.waiting);
  finding.tie = true;
  suspect(place.waiting,
          fmt::format("nobody made a {} before {}", to_string(a->call->kind), name_of(*a->call)), finding);
}

// A collective, that is: calls about groups are every member's duty.
bool is_even_miss(const Finding& finding) {
  const auto kind = finding.at ? parse_op_kind(finding.at->call.op) : std::nullopt;
  return finding.kind == "missing_participant" && kind && channel_of(*kind) == 0 &&
         finding.at->waiting.size() == finding.at->missing.size() && finding.culprits == finding.at->missing;
}

}  // namespace

std::vector<Rank> ranks_to_compare(const Verdict& verdict) {
  if (const auto* mismatch = std::get_if<Mismatch>(&verdict)) {
    RankSet ranks;
    for (const Variant& variant : mismatch->variants) {
      ranks.insert(RankSet{variant.ranks.first()});
    }
    return mismatch->finding.tie && mismatch->variants.size() == 2 ? ranks.to_vector() : std::vector<Rank>();
  }
  const auto* deadlock = std::get_if<Deadlock>(&verdict);
  if (deadlock == nullptr) {
    return {};
  }
  RankSet ranks;
  for (const Place& place : deadlock->circle) {
    ranks.insert(RankSet{place.waiting.first()});
  }
  if (is_even_miss(deadlock->finding)) {
    ranks.insert(RankSet{deadlock->finding.at->waiting.first()});
  }
  return deadlock->circle.size() > 2 ? std::vector<Rank>() : ranks.to_vector();
}

void order_suspects(Verdict& verdict, const std::vector<RankProgram>& programs) {
  if (auto* mismatch = std::get_if<Mismatch>(&verdict); mismatch != nullptr && mismatch->finding.tie) {
    order_mismatch(*mismatch, programs);
  } else if (auto* deadlock = std::get_if<Deadlock>(&verdict)) {
    if (!deadlock->circle.empty()) {
      order_circle(*deadlock, programs);
    } else if (is_even_miss(deadlock->finding)) {
      order_missing(*deadlock, programs);
    }
  }
}

}  // namespace rollcall::check
