#include "sim/judge/suspect_rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <fmt/core.h>

#include "sim/wording/phrasing.h"

namespace rollcall::check {
namespace {

// Numbers of elements that flags, counts and names stay below, and gradients and activations do not.
constexpr std::int64_t most_of_a_vote = 4;
constexpr std::int64_t most_of_a_message = 64;

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

// ---- Habits ----

// Where a label's trailing number begins: "grads_s2" is of step 2.
std::size_t end_of_name(std::string_view label) { return label.find_last_not_of("0123456789") + 1; }

// The same call, perhaps of another step.
bool is_repetition(const ProgramCall& a, const ProgramCall& b) {
  return a.group == b.group && a.kind == b.kind && a.numel == b.numel && a.dtype == b.dtype &&
         std::string_view(a.label).substr(0, end_of_name(a.label)) ==
             std::string_view(b.label).substr(0, end_of_name(b.label));
}

// The calls just before, as many as are compared.
Calls recent(const Side& side) {
  constexpr std::size_t compared_max = 256;
  return side.before.last(std::min(side.before.size(), compared_max));
}

// How many of the last calls also came just before the call number `earlier`.
std::size_t calls_alike(Calls before, std::size_t earlier) {
  std::size_t alike = 0;
  while (alike < earlier && is_repetition(before[earlier - 1 - alike], before[before.size() - 1 - alike])) {
    ++alike;
  }
  return alike;
}

// How well a side's call fits what the side did before: how many of the calls just before it also preceded the same
// call earlier. A call that was never made scores lower than one that was made after other calls.
constexpr std::size_t never_made = 0;
constexpr std::size_t made_elsewhere = 1;

std::size_t habit(const Side& side) {
  std::size_t best = never_made;
  const Calls before = recent(side);
  for (std::size_t earlier = 0; earlier < before.size(); ++earlier) {
    if (is_repetition(before[earlier], *side.call)) {
      best = std::max(best, made_elsewhere + calls_alike(before, earlier));
    }
  }
  return best;
}

// The call that earlier followed on the calls just before, of the longest such context; null if there is none.
const ProgramCall* usual_next(const Side& side) {
  const Calls before = recent(side);
  const ProgramCall* next = nullptr;
  std::size_t best = 0;
  for (std::size_t earlier = 1; earlier < before.size(); ++earlier) {
    if (const std::size_t alike = calls_alike(before, earlier); alike > best) {
      best = alike;
      next = &before[earlier];
    }
  }
  return next;
}

// True if a may have left out the other end of b's message. If its next call would have been another one, a loop ended
// there, as every loop does once.
bool may_have_left_out_other_end(const Side& a, const Side& b) {
  const ProgramCall* next = usual_next(a);
  return next != nullptr && next->kind == (b.call->kind == OpKind::send ? OpKind::recv : OpKind::send);
}

// Why a is at fault; empty if it is not.
using Rule = std::string (*)(const Side& a, const Side& b);

// b continues as it always did after the calls before, and a does not.
std::string breaks_habit(const Side& a, const Side& b) {
  const bool is_about_message = is_point_to_point(b.call->kind) && !is_point_to_point(a.call->kind);
  if (is_about_message && !may_have_left_out_other_end(a, b)) {
    return {};
  }
  if (habit(b) > std::max(habit(a), made_elsewhere)) {
    return fmt::format("{} pattern: in earlier steps {} next call was {}",
                       with_verb(a.ranks, "breaks its", "break their"), is_plural(a.ranks) ? "their" : "its",
                       name_of(*b.call));
  }
  return {};
}

// ---- Rules about two sides that met with different calls. Each asks about `a`; both orders are tried. ----

// a is at a vote that every step begins with, while b is still in the step: a has skipped something.
std::string votes_early(const Side& a, const Side& b) {
  const bool votes = a.call->numel <= most_of_a_vote && a.call->kind != OpKind::barrier;
  if (votes && contains(a.before, *a.call) && !contains(b.before, *b.call)) {
    return fmt::format("{} again at {}, which begins every step, and left out {}",
                       with_verb(a.ranks, "is", "are"), name_of(*a.call, *b.call), name_of(*b.call, *a.call));
  }
  return {};
}

// a makes a kind of call that it has not made before, that carries hardly any data, and that b never makes: a is on a
// path of its own. If no call follows on either side, the programs were recorded up to here, and b may make a's call
// next.
std::string takes_own_path(const Side& a, const Side& b) {
  const bool looks_ahead = !a.after.empty() || !b.after.empty();
  if (looks_ahead && a.call->kind != b.call->kind && is_on_own_path(a) && has_kind(b.before, b.call->kind) &&
      !contains(b.after, *a.call)) {
    return fmt::format("{} on a path of {} own: no rank called {} before", with_verb(a.ranks, "is", "are"),
                       is_plural(a.ranks) ? "their" : "its", to_string(a.call->kind));
  }
  return {};
}

// a is the root of a call that distributes or collects something small, and the others never make it: rank 0 acts
// alone.
std::string is_root_alone(const Side& a, const Side& b) {
  const bool is_small = a.call->numel <= most_of_a_message;
  if (a.call->is_root && is_small && a.call->kind != b.call->kind && !contains(b.after, *a.call)) {
    return fmt::format("{} the root of {}, and no other rank calls it", with_verb(a.ranks, "is", "are"),
                       name_of(*a.call));
  }
  return {};
}

// b waits in a barrier for a to get there, and a does something else first.
std::string keeps_barrier_waiting(const Side& a, const Side& b) {
  if (b.call->kind == OpKind::barrier && contains(a.after, *b.call) && !contains(b.after, *a.call)) {
    return fmt::format("{} {} before the barrier that the others are in", with_verb(a.ranks, "makes", "make"),
                       name_of(*a.call));
  }
  return {};
}

// b will still make a's call, but a will never make b's: a has left something out.
std::string is_ahead(const Side& a, const Side& b) {
  if (contains(b.after, *a.call) && !contains(a.after, *b.call)) {
    return fmt::format("{} ahead: {} {} without {}", with_verb(a.ranks, "is", "are"),
                       is_plural(a.ranks) ? "they reached" : "it reached", name_of(*a.call, *b.call),
                       name_of(*b.call, *a.call));
  }
  return {};
}

// a repeats a call that it made before, and b is at a new one: a went around its loop without it.
std::string went_round(const Side& a, const Side& b) {
  if (contains(a.before, *a.call) && !contains(b.before, *b.call)) {
    return fmt::format("{} {} without {}", with_verb(a.ranks, "repeats", "repeat"), name_of(*a.call, *b.call),
                       name_of(*b.call, *a.call));
  }
  return {};
}

// Values are promoted to wider types by accident, hardly ever to narrower ones.
std::string is_wider(const Side& a, const Side& b) {
  const auto width = [](const ProgramCall& call) {
    const auto dtype = parse_dtype(call.dtype);
    return dtype ? size_of(*dtype) : 0;
  };
  if (a.call->kind == b.call->kind && a.call->numel == b.call->numel && width(*a.call) > width(*b.call)) {
    return fmt::format("{} the wider type, as promotion does", with_verb(a.ranks, "has", "have"));
  }
  return {};
}

// Neither will make the other's call, and a's is too small to be part of a step: a flag or a name, on a path of its
// own.
std::string stays_away(const Side& a, const Side& b) {
  const bool apart = !contains(a.after, *b.call) && !contains(b.after, *a.call);
  if (apart && !a.before.empty() && a.call->numel <= most_of_a_vote && b.call->numel > most_of_a_message &&
      a.call->kind != OpKind::barrier) {
    return fmt::format("{} at a call of {}, the other in the middle of a step",
                       with_verb(a.ranks, "is", "are"), elements(a.call->numel));
  }
  return {};
}

// ---- Rules about two sides that wait for each other ----

// Only one side waits in a message; the other is in a call that all ranks make. A receiver should not wait for a
// message that no rank sends; a message that is sent has to be received.
std::string has_no_other_end(const Side& a, const Side& b) {
  if (is_point_to_point(a.call->kind) == is_point_to_point(b.call->kind)) {
    return {};
  }
  if (a.call->kind == OpKind::recv) {
    return fmt::format("{} a message that no rank sends", with_verb(a.ranks, "waits for", "wait for"));
  }
  if (b.call->kind == OpKind::send) {
    return fmt::format("{} receive what {}", with_verb(a.ranks, "does not", "do not"),
                       with_verb(b.ranks, "sends", "send"));
  }
  return {};
}

// b will never make a's call, but a would still make b's: a makes an extra call.
std::string makes_extra_call(const Side& a, const Side& b) {
  if (!contains(b.after, *a.call) && contains(a.after, *b.call)) {
    return fmt::format("{} alone in {}: it is in no other rank's program here",
                       with_verb(a.ranks, "is", "are"), name_of(*a.call));
  }
  return {};
}

// The trailing number of a label; null if there is none.
std::optional<std::int64_t> step_of(std::string_view label) {
  const std::size_t begin = end_of_name(label);
  constexpr std::size_t digits_max = 9;
  if (begin == label.size() || label.size() - begin > digits_max) {
    return std::nullopt;
  }
  return std::stoll(std::string(label.substr(begin)));
}

// By the numbers in their labels, a is in a later step than b.
std::string is_in_later_step(const Side& a, const Side& b) {
  const auto mine = step_of(a.call->label);
  const auto other = step_of(b.call->label);
  if (mine && other && *mine > *other) {
    return fmt::format("{} already in {}, the others are still in {}", with_verb(a.ranks, "is", "are"),
                       a.call->label, b.call->label);
  }
  return {};
}

// b makes or ends a group, which every member has to do, and a does something else.
std::string shirks_group_call(const Side& a, const Side& b) {
  if (is_about_groups(b.call->kind) && !is_about_groups(a.call->kind)) {
    return fmt::format("{} call {}, which every member has to call", with_verb(a.ranks, "does not", "do not"),
                       name_of(*b.call));
  }
  return {};
}

constexpr std::array<Rule, 9> mismatch_rules{
    breaks_habit, votes_early, takes_own_path, is_root_alone, keeps_barrier_waiting,
    is_ahead,     went_round,  is_wider,       stays_away};
constexpr std::array<Rule, 5> cycle_rules{breaks_habit, has_no_other_end, shirks_group_call, makes_extra_call,
                                          is_in_later_step};

// Returns the opinion of the first rule that finds fault with one side and not with the other.
Opinion ask(std::span<const Rule> rules, const Side& a, const Side& b) {
  for (const Rule rule : rules) {
    const std::string about_a = rule(a, b);
    const std::string about_b = rule(b, a);
    if (about_a.empty() != about_b.empty()) {
      return about_a.empty() ? Opinion{&b, about_b} : Opinion{&a, about_a};
    }
  }
  return {};
}

}  // namespace

Opinion opinion_on_mismatch(const Side& a, const Side& b) { return ask(mismatch_rules, a, b); }
Opinion opinion_on_cycle(const Side& a, const Side& b) { return ask(cycle_rules, a, b); }

bool is_on_own_path(const Side& side) {
  return !side.before.empty() && !has_kind(side.before, side.call->kind) &&
         side.call->numel <= most_of_a_message;
}

bool came_by(const Side& side, const ProgramCall& call) {
  return std::ranges::any_of(side.before, [&](const ProgramCall& earlier) {
    return earlier.kind == call.kind && earlier.numel == call.numel && earlier.label == call.label;
  });
}

std::string name_of(const ProgramCall& call) {
  return std::string(to_string(call.kind)) + (call.label.empty() ? "" : " in " + call.label);
}

std::string name_of(const ProgramCall& call, const ProgramCall& beside) {
  const std::string name = name_of(call);
  if (name != name_of(beside)) {
    return name;
  }
  return call.group != beside.group ? name + " on " + call.group
         : call.site.empty()        ? name
                                    : name + " at " + call.site;
}

}  // namespace rollcall::check
