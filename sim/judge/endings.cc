#include "sim/judge/complete_parts.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <tuple>

#include "sim/wording/phrasing.h"
#include "sim/wording/wording.h"
#include "sim/wording/wording_messages.h"

namespace rollcall::check {
namespace {

bool is_at(const Step& step, const StepLog& log, const Call& call) {
  return step.seq == call.seq && log.group_name(step.group) == call.group;
}

// True if both are rounds of one loop: calls of the same size, made by the same line.
bool are_rounds(const Step& a, const Step& b) {
  return a.group == b.group && a.text == b.text && a.label == b.label && a.site == b.site;
}

const Steps* steps_of(const StepLog& log, const RankSet& ranks) {
  const auto own = log.ranks.find(ranks.first());
  return own == log.ranks.end() ? nullptr : &own->second;
}

std::size_t rounds_in(std::span<const Step> steps, const Step& like) {
  return static_cast<std::size_t>(
      std::ranges::count_if(steps, [&](const Step& step) { return are_rounds(step, like); }));
}

// "all_reduce in train (train.py:61) at train.py:61".
std::string step_phrase(const Step& step) {
  Call call;
  call.label = step.label;
  call.site = step.site;
  return step.text.substr(0, step.text.find(' ')) + origin_of(call);
}

// The messages of a rank to or from one peer with one tag, in order: those that can meet the peer's.
std::vector<const ProgramCall*> messages_of(const std::vector<RankProgram>& programs, Rank rank, OpKind kind,
                                            Rank peer, std::int32_t tag) {
  std::vector<const ProgramCall*> messages;
  for (const RankProgram& program : programs) {
    for (const ProgramCall& call : program.calls) {
      if (program.rank == rank && call.kind == kind && call.peer == peer && call.tag == tag) {
        messages.push_back(&call);
      }
    }
  }
  return messages;
}

// For two ranks that exchange messages in a loop and run different numbers of iterations.
void explain_messages(const Outlook& outlook, Finding& finding) {
  const Call& call = finding.at->call;
  const Rank waiting = finding.at->waiting.first();
  const bool sends = call.op == "send";
  const std::vector<RankProgram> programs = outlook.programs({waiting, call.peer});
  const auto own = messages_of(programs, waiting, sends ? OpKind::send : OpKind::recv, call.peer, call.tag);
  const auto others =
      messages_of(programs, call.peer, sends ? OpKind::recv : OpKind::send, waiting, call.tag);
  const auto met = std::ranges::find_if(own, [&](const ProgramCall* message) {
    return message->seq == call.seq && message->group == call.group;
  });
  if (met == own.end() || others.empty()) {
    return;
  }
  const auto wanted = static_cast<std::size_t>(met - own.begin()) + 1;
  const bool is_loop = std::ranges::all_of(own.begin(), met, [&](const ProgramCall* message) {
    return message->site == (*met)->site && message->group == (*met)->group;
  });
  if (is_loop && others.size() + 1 == wanted) {
    word_uneven_messages(others.size(), wanted, finding);
  }
}

// A statement that two ranks reach a different number of times.
struct UnevenStatement {
  const Step* step = nullptr;
  std::size_t first = 0;   // times that one rank reaches it
  std::size_t second = 0;  // and the other
};

// The only statement that the two ranks do not reach equally often; null if there are none or several. Statements
// without a place in a file cannot be told apart.
UnevenStatement uneven_statement(const Steps& first, const Steps& second) {
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, UnevenStatement> statements;
  const auto count = [&](const Steps& steps, std::size_t UnevenStatement::*times) {
    for (const Step& step : steps) {
      UnevenStatement& statement = statements[{step.text, step.label, step.site}];
      statement.step = &step;
      ++(statement.*times);
    }
  };
  count(first, &UnevenStatement::first);
  count(second, &UnevenStatement::second);
  UnevenStatement found;
  for (const auto& [key, statement] : statements) {
    const bool is_uneven = statement.first != statement.second;
    if (statement.step->site.empty() || (is_uneven && found.step != nullptr)) {
      return {};
    }
    found = is_uneven ? statement : found;
  }
  return found;
}

Steps steps_on(const Steps& steps, GroupId group) {
  Steps found;
  std::ranges::copy_if(steps, std::back_inserter(found),
                       [group](const Step& step) { return step.group == group; });
  return found;
}

Variant variant_of(const RankSet& ranks, const Step& step, const Call& like) {
  Call call;
  call.op = step.text.substr(0, step.text.find(' '));
  call.group = like.group;
  call.seq = step.seq;
  call.label = step.label;
  call.site = step.site;
  return {ranks, call};
}

// If the ranks parted at an earlier statement, and unlike calls of one size have met since then, names that statement.
// Returns true if it did.
bool explain_shift(const Steps& gone, const RankSet& ended, const Steps& left, const Step& met,
                   Finding& finding) {
  const Steps own = steps_on(gone, met.group);
  const Steps others = steps_on(left, met.group);
  const UnevenStatement uneven = uneven_statement(own, others);
  if (uneven.step == nullptr || are_rounds(*uneven.step, met)) {
    return false;
  }
  const auto [mine, theirs] = std::ranges::mismatch(own, others, are_rounds);
  if (mine == own.end() || theirs == others.end() || mine->seq != theirs->seq) {
    return false;
  }
  const Place& place = *finding.at;
  finding.first_divergence =
      Divergence{place.call.group,
                 mine->seq,
                 {variant_of(ended, *mine, place.call), variant_of(place.waiting, *theirs, place.call)}};
  word_uneven_statement(ended, uneven.first, uneven.second, step_phrase(*uneven.step), finding);
  return true;
}

// The missing ranks that are to blame: others may be on their way and wait elsewhere.
RankSet gone_from(const Finding& finding) {
  const RankSet& missing = finding.at->missing;
  const RankSet blamed = intersection(missing, finding.culprits);
  return blamed.empty() ? missing : blamed;
}

// For a rank that has gone on to a new statement while the others are in one more round of a call that it made as often
// as they did before.
void explain_left_loop(const Outlook& outlook, Mismatch& mismatch) {
  Finding& finding = mismatch.finding;
  const bool own_is_first = mismatch.variants[0].ranks == finding.culprits;
  const Variant& own = mismatch.variants[own_is_first ? 0 : 1];
  const Variant& other = mismatch.variants[own_is_first ? 1 : 0];
  if (own.ranks != finding.culprits) {
    return;
  }
  const StepLog log = outlook.steps(RankSet{own.ranks.first(), other.ranks.first()}.to_vector());
  const Steps* gone = steps_of(log, own.ranks);
  const Steps* left = steps_of(log, other.ranks);
  if (gone == nullptr || left == nullptr) {
    return;
  }
  const auto at = [&log](const Steps& steps, const Call& call) {
    return std::ranges::find_if(steps, [&](const Step& step) { return is_at(step, log, call); });
  };
  const auto next = at(*gone, own.call);
  const auto met = at(*left, other.call);
  if (next == gone->end() || met == left->end() || are_rounds(*next, *met) || next->shadow || met->shadow) {
    return;
  }
  const std::size_t made = rounds_in(std::span(gone->begin(), next), *met);
  const std::size_t wanted = rounds_in(std::span(left->begin(), met), *met) + 1;
  const bool is_new = rounds_in(std::span(gone->begin(), next), *next) == 0;
  const bool comes_back = rounds_in(std::span(next, gone->end()), *met) > 0;
  if (is_new && !comes_back && made > 1 && made + 1 == wanted) {
    const bool others_follow = rounds_in(std::span(met, left->end()), *next) > 0;
    word_left_loop(own.ranks, made, other, others_follow, finding);
  }
}

}  // namespace

bool has_unexplained_endings(const Verdict& verdict) {
  if (const auto* mismatch = std::get_if<Mismatch>(&verdict)) {
    return !mismatch->finding.tie && mismatch->variants.size() == 2 && !mismatch->finding.first_divergence &&
           mismatch->finding.kind != FindingKind::join_hook_mismatch;
  }
  const auto* deadlock = std::get_if<Deadlock>(&verdict);
  return deadlock != nullptr && needs_history(deadlock->finding);
}

void explain_endings(const Outlook& outlook, Verdict& verdict) {
  if (auto* mismatch = std::get_if<Mismatch>(&verdict)) {
    explain_left_loop(outlook, *mismatch);
    return;
  }
  Finding& finding = *finding_of(verdict);
  if (finding.kind != FindingKind::missing_participant) {
    explain_messages(outlook, finding);
    return;
  }
  const Place& place = *finding.at;
  const RankSet ended = gone_from(finding);
  const StepLog log = outlook.steps(RankSet{ended.first(), place.waiting.first()}.to_vector());
  const Steps* gone = steps_of(log, ended);
  const Steps* left = steps_of(log, place.waiting);
  if (gone == nullptr || left == nullptr) {
    return;
  }
  const auto met =
      std::ranges::find_if(*left, [&](const Step& step) { return is_at(step, log, place.call); });
  const bool uses_join =
      std::ranges::any_of(*gone, [](const Step& step) { return step.shadow || step.is_joins; });
  if (met == left->end() || uses_join || explain_shift(*gone, ended, *left, *met, finding)) {
    return;
  }
  const std::size_t made = rounds_in(*gone, *met);
  const std::size_t wanted = rounds_in(std::span(left->begin(), met), *met) + 1;
  if (made > 0 && made < wanted) {
    word_uneven_steps(ended, made, wanted, finding);
  } else if (made > 0) {
    word_fewer_calls(ended, finding);
  } else if (!gone->empty()) {
    word_last_call(ended, step_phrase(gone->back()), finding);
  }
}

}  // namespace rollcall::check
