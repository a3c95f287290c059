#include "sim/wording/wording_repair.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "sim/base/expects.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {
namespace {

using Programs = std::span<const RankProgram>;

const RankProgram& program_of(Programs programs, Rank rank) {
  const auto found = std::ranges::lower_bound(programs, rank, {}, &RankProgram::rank);
  expects(found != programs.end() && found->rank == rank, "the program of each rank that changes is there");
  return *found;
}

bool is_message(const ProgramCall& call) { return is_point_to_point(call.kind); }

// "all_reduce on dp0", "send to rank 2".
std::string call_words(const ProgramCall& call) {
  const std::string_view op = to_string(call.kind);
  if (!is_message(call)) {
    return fmt::format("{} on {}", op, call.group);
  }
  if (call.peer < 0) {
    return fmt::format("{} from anyone", op);
  }
  return fmt::format("{} {} rank {}", op, call.kind == OpKind::send ? "to" : "from", call.peer);
}

// The same, with its size and where it is.
std::string full_words(const ProgramCall& call) {
  Call place;
  place.label = call.label;
  place.site = call.site;
  const std::string size = call.dtype.empty() ? "" : fmt::format(" of {} x {}", call.numel, call.dtype);
  return call_words(call) + size + origin_of(place);
}

std::string list_words(std::span<const ProgramCall> calls) {
  const std::string more =
      calls.size() > 1
          ? fmt::format(" and {}", calls.size() == 2 ? "the next call"
                                                     : fmt::format("the next {} calls", calls.size() - 1))
          : "";
  return full_words(calls.front()) + more;
}

std::span<const ProgramCall> dropped_by(const CallEdit& edit, const RankProgram& program) {
  return std::span(program.calls)
      .subspan(static_cast<std::size_t>(edit.at), static_cast<std::size_t>(edit.dropped));
}

std::string before_words(const CallEdit& edit, const RankProgram& program) {
  const auto at = static_cast<std::size_t>(edit.at);
  return at < program.calls.size() ? " before " + full_words(program.calls[at]) : " at the end";
}

// What sets two calls apart whose full_words are equal; empty if that takes more words.
std::string argument_words(const ProgramCall& call, const ProgramCall& other) {
  if (call.group != other.group) {
    return fmt::format("group {}", call.group);
  }
  if (call.tag != other.tag) {
    return fmt::format("tag {}", call.tag);
  }
  if (call.root != other.root && !is_message(call)) {  // a message's peer is in its words
    return fmt::format("root {}", call.root);
  }
  return call.reduce == other.reduce ? "" : std::string(to_string(call.reduce));
}

std::string step_words(const CallEdit& edit, const RankProgram& program) {
  if (edit.dropped == 0) {
    return fmt::format("call {}{}", list_words(edit.inserted), before_words(edit, program));
  }
  const std::span<const ProgramCall> out = dropped_by(edit, program);
  const std::string instead = list_words(out);
  if (edit.inserted.size() == 1 && list_words(edit.inserted) == instead) {
    const ProgramCall& right = edit.inserted.front();
    if ((right.batch < 0) != (out.front().batch < 0)) {
      return fmt::format("call {} {} batch_isend_irecv", instead, right.batch < 0 ? "outside" : "in a");
    }
    const std::string expected = argument_words(right, out.front());
    return expected.empty() ? fmt::format("call {} with the arguments that its peers give", instead)
                            : fmt::format("call {} with {} instead of {}", instead, expected,
                                          argument_words(out.front(), right));
  }
  return edit.inserted.empty() ? fmt::format("leave out {}", instead)
                               : fmt::format("call {} instead of {}", list_words(edit.inserted), instead);
}

std::span<const ProgramCall> calls_before(const CallEdit& edit, const RankProgram& program) {
  return std::span(program.calls).first(std::min(static_cast<std::size_t>(edit.at), program.calls.size()));
}

// The number that a call on the group of `like` would have, made in the place of the edit.
std::int64_t number_of(const ProgramCall& like, const RankProgram& program, const CallEdit& edit) {
  return std::ranges::count_if(calls_before(edit, program), [&](const ProgramCall& call) {
    return call.group == like.group && count_of(call.kind) == count_of(like.kind);
  });
}

// A receive from anyone that the rank makes before the edit, and that could take the message of `call`; null if there
// is none.
const ProgramCall* earlier_from_anyone(const RankProgram& program, const CallEdit& edit,
                                       const ProgramCall& call) {
  const std::span<const ProgramCall> before = calls_before(edit, program);
  const auto found = std::ranges::find_if(before, [&call](const ProgramCall& earlier) {
    return earlier.kind == OpKind::recv && earlier.peer < 0 && earlier.group == call.group &&
           earlier.tag == call.tag;
  });
  return call.kind == OpKind::recv && found != before.end() ? &*found : nullptr;
}

enum class Mistake { left_out, extra, moved, other_group, other_peer, other_call };

// The call that an edit is about.
const ProgramCall& subject_of(const CallEdit& edit, const RankProgram& program) {
  return edit.inserted.empty() ? dropped_by(edit, program).front() : edit.inserted.front();
}

// Words for what the first edits of all culprits are about: the first one's call, or only its kind where others make
// theirs on another group.
std::string shared_words(const CallEdits& edits, Programs programs) {
  const ProgramCall& call = subject_of(edits.front(), program_of(programs, edits.front().rank));
  Rank rank = edits.front().rank;
  for (const CallEdit& edit : edits) {
    if (edit.rank == rank) {
      continue;
    }
    rank = edit.rank;
    const ProgramCall& other = subject_of(edit, program_of(programs, rank));
    if (!is_message(call) && other.kind == call.kind && other.group != call.group) {
      return fmt::format("{} on groups of their own", to_string(call.kind));
    }
  }
  return full_words(call);
}

// True if an edit makes the calls that it drops in another order.
bool only_reorders(std::span<const ProgramCall> out, std::span<const ProgramCall> in) {
  const auto words_of = [](std::span<const ProgramCall> calls) {
    std::vector<std::string> words;
    std::ranges::transform(calls, std::back_inserter(words), call_words);
    std::ranges::sort(words);
    return words;
  };
  return out.size() > 1 && out.size() == in.size() && words_of(out) == words_of(in);
}

// The mistake behind the first edit needed, which determines what the others are about.
Mistake mistake_of(std::span<const CallEdit> edits, const RankProgram& program) {
  const CallEdit& first = edits.front();
  const std::span<const ProgramCall> out = dropped_by(first, program);
  if (only_reorders(out, first.inserted)) {
    return Mistake::moved;
  }
  if (!out.empty() && !first.inserted.empty()) {
    const ProgramCall& old_call = out.front();
    const ProgramCall& new_call = first.inserted.front();
    if (old_call.kind == new_call.kind && old_call.group != new_call.group) {
      return Mistake::other_group;
    }
    return old_call.kind == new_call.kind && old_call.peer != new_call.peer ? Mistake::other_peer
                                                                            : Mistake::other_call;
  }
  for (const CallEdit& later : edits.subspan(1)) {
    const std::span<const ProgramCall> later_out = dropped_by(later, program);
    const bool comes_later = out.empty() && later_out.size() == 1 && later.inserted.empty() &&
                             call_words(later_out.front()) == call_words(first.inserted.front());
    const bool comes_sooner = out.size() == 1 && later.inserted.size() == 1 && later_out.empty() &&
                              call_words(out.front()) == call_words(later.inserted.front());
    if (comes_later || comes_sooner) {
      return Mistake::moved;
    }
  }
  return out.empty() ? Mistake::left_out : Mistake::extra;
}

// Names the calls that wait in vain where this one is missing, or where no other rank makes it.
FindingKind kind_of(Mistake mistake, const ProgramCall& call, FindingKind usual) {
  const bool sends = call.kind == OpKind::send;
  switch (mistake) {
    case Mistake::left_out:
      return !is_message(call) ? FindingKind::missing_participant
                               : (sends ? FindingKind::unmatched_recv : FindingKind::unmatched_send);
    case Mistake::extra:
      return !is_message(call) ? FindingKind::missing_participant
                               : (sends ? FindingKind::unmatched_send : FindingKind::unmatched_recv);
    case Mistake::other_group:
      return FindingKind::wrong_group;
    case Mistake::other_peer:
      return FindingKind::wrong_peer;
    case Mistake::moved:
      return is_message(call) ? FindingKind::p2p_order : FindingKind::order_crossing;
    case Mistake::other_call:
      break;
  }
  return usual;
}

// The place at which others wait for the culprits, or else one in which the culprits wait.
const Place* shown_place(std::span<const Place> places, const RankSet& culprits, bool missing_first) {
  const auto find = [&](bool missing) {
    return std::ranges::find_if(
        places, [&](const Place& place) { return culprits.meets(missing ? place.missing : place.waiting); });
  };
  auto found = find(missing_first);
  found = found == places.end() ? find(!missing_first) : found;
  return found == places.end() ? nullptr : &*found;
}

}  // namespace

std::vector<RepairStep> repair_steps(const CallEdits& edits, Programs programs) {
  std::vector<RepairStep> steps;
  for (const CallEdit& edit : edits) {
    std::string text = step_words(edit, program_of(programs, edit.rank));
    const auto known = std::ranges::find(steps, text, &RepairStep::text);
    if (known == steps.end()) {
      steps.push_back({{edit.rank}, std::move(text), 1});
      continue;
    }
    known->times += known->ranks.first() == edit.rank ? 1 : 0;
    known->ranks.insert(RankSet{edit.rank});
  }
  return steps;
}

bool says_the_same(const CallEdits& edits, Programs programs, const Finding& finding) {
  const CallEdit& first = edits.front();
  if (!finding.at || (first.dropped > 0 && !first.inserted.empty())) {
    return false;
  }
  const ProgramCall& call = subject_of(first, program_of(programs, first.rank));
  const auto kind = parse_op_kind(finding.at->call.op);
  return kind && count_of(*kind) == count_of(call.kind) && finding.at->call.label == call.label;
}

void word_culprits(const CallEdits& edits, Programs programs, std::span<const Place> places,
                   Finding& finding) {
  const CallEdit& first = edits.front();
  const RankProgram& program = program_of(programs, first.rank);
  const auto end = std::ranges::find_if(edits, [&](const CallEdit& edit) { return edit.rank != first.rank; });
  const Mistake mistake = mistake_of({edits.begin(), end}, program);
  const std::span<const ProgramCall> out = dropped_by(first, program);
  const ProgramCall& call = subject_of(first, program);
  const RankSet& culprits = finding.culprits;
  const bool alone = culprits.size() == 1;
  if (const Place* place =
          shown_place(places, culprits, mistake != Mistake::extra && mistake != Mistake::other_group)) {
    finding.at = *place;
  }
  finding.kind = kind_of(mistake, call, finding.kind);
  const auto says = [&](const std::string& right) {
    return fmt::format("{} {}, instead of {}", with_verb(culprits, "calls", "call"), full_words(out.front()),
                       right);
  };
  const std::string number =
      is_message(call) ? "" : fmt::format(", its #{} there", number_of(call, program, first));
  switch (mistake) {
    case Mistake::left_out:
      finding.headline = fmt::format("{} {}{}", with_verb(culprits, "leaves out", "leave out"),
                                     shared_words(edits, programs), alone ? number : "");
      finding.cause =
          "what is called after it meets calls of other ranks that do not belong to it, or no call at all";
      finding.advice =
          fmt::format("call it on {}, too, or on none of its peers", alone ? "this rank" : "these ranks");
      break;
    case Mistake::extra:
      finding.headline = fmt::format("{} {}, which {} not call", with_verb(culprits, "calls", "call"),
                                     shared_words(edits, programs),
                                     is_message(call) ? "its other end does" : "the others do");
      finding.cause = "a call that only some of its ranks make waits for the rest of them";
      finding.advice = "let every rank of the group make the call, or none";
      break;
    case Mistake::moved:
      finding.headline = fmt::format("{} {} in a different order than the others",
                                     with_verb(culprits, "makes", "make"), shared_words(edits, programs));
      finding.cause = "each waits in a call that the others make only after the one in which they wait";
      finding.advice = "make these calls in one order on all ranks";
      break;
    case Mistake::other_group:
      finding.headline = says(is_message(call) ? fmt::format("{} of another group", to_string(call.kind))
                                               : call_words(call));
      finding.cause = "a call on another group meets no call there, and is missing where its peers wait";
      finding.advice = fmt::format("pass the group that the peers pass: {}", call.group);
      break;
    case Mistake::other_peer:
      if (const ProgramCall* any = earlier_from_anyone(program, first, out.front())) {
        finding.headline = fmt::format("{} {}, whose message an earlier recv from anyone may have taken",
                                       with_verb(culprits, "calls", "call"), full_words(out.front()));
        finding.cause =
            fmt::format("the {} takes the message of whichever rank comes first", full_words(*any));
        finding.advice = "name the source there, or give these messages a tag of their own";
        break;
      }
      finding.headline = says(call_words(call));
      finding.cause = "a message is not matched unless both ends name each other";
      finding.advice = fmt::format("name rank {} as the other end", call.peer);
      break;
    case Mistake::other_call:
      finding.headline = says(full_words(call));
      finding.cause = is_message(call) ? fmt::format("rank {} waits for the message", call.peer)
                                       : "the peers make the other call there, and wait for it";
      finding.advice =
          is_message(call)
              ? "let both ends exchange the same messages: no break, continue or except that depends "
                "on the rank"
              : "make the same call on all ranks";
      break;
  }
}

}  // namespace rollcall::check
