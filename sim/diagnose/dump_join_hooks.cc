// Judges Join's hooks by the stacks of calls that met: a rank that ran out of inputs repeats the calls of an iteration,
// and between iterations it counts the ranks that still have inputs. If one of its counts meets a call of an iteration,
// a hook makes too few calls or too many. If the calls agree in size, everything finishes, and only the values are
// wrong.

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/core.h>

#include "sim/diagnose/dump_case.h"
#include "sim/diagnose/dump_compare.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

namespace {

// The purpose of a call, by the functions of torch/distributed/algorithms/join.py in which it was made.
enum class Role : std::uint8_t {
  iteration,  // of a rank that has inputs; or not a call of Join's at all
  notice,     // of the same rank, saying at the start of an iteration that it has inputs
  count,      // of a rank without inputs, counting the ranks that have some
  shadow,     // of the same rank, in a main_hook
  end,        // in a post_hook
};

Role role_of(const DumpStack& stack) {
  bool in_exit = false;
  Role role = Role::iteration;
  for (const DumpFrame& frame : stack) {
    const bool in_join = frame.file.ends_with("algorithms/join.py");
    in_exit = in_exit || (in_join && frame.function == "__exit__");
    if (frame.function == "main_hook") {
      role = Role::shadow;
    } else if (frame.function == "post_hook") {
      role = Role::end;
    } else if (in_join && frame.function == "notify_join_context") {
      return Role::notice;
    } else if (in_join && (frame.function == "_get_num_nonjoined_procs" ||
                           frame.function == "_notify_procs_to_terminate")) {
      return Role::count;
    }
  }
  return in_exit || role == Role::iteration ? role : Role::iteration;
}

bool is_joined(Role role) { return role == Role::count || role == Role::shadow || role == Role::end; }

// A number for the calls that a call of this role should meet: the same for roles that meet.
int kind_met(Role role) {
  switch (role) {
    case Role::notice:
    case Role::count:
      return 0;
    case Role::iteration:
    case Role::shadow:
      return 1;
    case Role::end:
      break;
  }
  return 2;
}

class JoinJudge {
 public:
  explicit JoinJudge(const DumpCase& job) : job_(job) {
    for (const DumpStack& stack : job.view.job.stacks) {
      roles_.push_back(role_of(stack));
    }
  }

  std::optional<Diagnosis> judge() const {
    if (std::find(roles_.begin(), roles_.end(), Role::count) == roles_.end()) {
      return std::nullopt;
    }
    for (const GroupCalls& group : job_.view.groups) {
      if (std::optional<Diagnosis> diagnosis = judge(group)) {
        return diagnosis;
      }
    }
    return std::nullopt;
  }

 private:
  Role role(const GroupMember& member, const DumpOp& op) const {
    return roles_[member.ops->record_of(op).stack];
  }

  std::optional<Diagnosis> judge(const GroupCalls& group) const {
    std::vector<std::int64_t> positions;  // where some member has joined
    for (const GroupMember& member : group.members) {
      for (std::size_t i = 0; i < member.collectives.size(); ++i) {
        if (is_joined(role(member, member.op(i)))) {
          positions.push_back(member.op(i).position);
        }
      }
    }
    std::sort(positions.begin(), positions.end());
    positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
    for (const std::int64_t position : positions) {
      if (std::optional<Diagnosis> diagnosis = judge(group, position)) {
        return diagnosis;
      }
    }
    return std::nullopt;
  }

  std::optional<Diagnosis> judge(const GroupCalls& group, std::int64_t position) const {
    const GroupMember* usual = usual_at(group, position);
    const GroupMember* odd = nullptr;
    RankSet joined;
    for (const GroupMember& member : group.members) {
      const DumpOp* op = member.at(position);
      if (op == nullptr || usual == nullptr || !is_joined(role(member, *op))) {
        continue;
      }
      if (kind_met(role(member, *op)) != kind_met(role(*usual, *usual->at(position)))) {
        joined.insert(member.rank);
        odd = odd == nullptr ? &member : odd;
      }
    }
    if (odd == nullptr || !is_in_the_join_of(*odd, *usual, position)) {
      return std::nullopt;
    }
    return out_of_step(group, position, *odd, *usual, joined);
  }

  // The first count of a rank without inputs meets the notice at the start of an iteration. If it meets any other call,
  // the member that makes that call is not in this Join at all.
  bool is_in_the_join_of(const GroupMember& odd, const GroupMember& usual, std::int64_t position) const {
    std::int64_t first = position;
    for (const DumpOp* op = odd.at(first - 1); op != nullptr && is_joined(role(odd, *op));
         op = odd.at(first - 1)) {
      --first;
    }
    const DumpOp* met = usual.at(first);
    return met == nullptr || role(usual, *met) != Role::iteration;
  }

  // The member that decides which call belongs here: one with inputs. If none is left, one of the majority.
  const GroupMember* usual_at(const GroupCalls& group, std::int64_t position) const {
    std::map<int, std::pair<std::size_t, const GroupMember*>> kinds;
    for (const GroupMember& member : group.members) {
      const DumpOp* op = member.at(position);
      if (op == nullptr || member.ops->record_of(*op).stack == 0) {
        continue;
      }
      if (!is_joined(role(member, *op))) {
        return &member;
      }
      auto& [count, first] = kinds[kind_met(role(member, *op))];
      ++count;
      first = first == nullptr ? &member : first;
    }
    const auto fewer = [](const auto& a, const auto& b) { return a.second.first < b.second.first; };
    const auto most = std::max_element(kinds.begin(), kinds.end(), fewer);
    return most == kinds.end() ? nullptr : most->second.second;
  }

  Diagnosis out_of_step(const GroupCalls& group, std::int64_t position, const GroupMember& odd,
                        const GroupMember& usual, const RankSet& joined) const {
    Diagnosis diagnosis = diagnosis_of(FindingKind::join_shadow_mismatch, Confidence::high, joined);
    Finding& finding = diagnosis.finding;
    const Call mine = name_call(job_, *odd.ops, *odd.at(position));
    const Call theirs = name_call(job_, *usual.ops, *usual.at(position));
    finding.at = Place{mine, {}, {}};
    set_group(job_, group.group, diagnosis);
    const std::string who = ranks_phrase(joined);
    const std::string place = call_phrase(theirs);
    finding.headline = fmt::format("{} joined early and {} out of step with the others in {}", who,
                                   is_plural(joined) ? "are" : "is", place);
    finding.cause =
        fmt::format("{} {}, and {} {}", ranks_phrase({odd.rank}), phrase(role(odd, *odd.at(position))),
                    ranks_phrase({usual.rank}), phrase(role(usual, *usual.at(position))));
    finding.advice = "make the main_hook of the joinable issue exactly the collectives of one iteration";
    if (is_joined(role(usual, *usual.at(position)))) {  // the majority need not be right
      diagnosis.confidence = Confidence::low;
      diagnosis.would_settle.push_back(
          "dumps with a longer ring (TORCH_FR_BUFFER_SIZE), back to when ranks still had inputs");
    }
    diagnosis.evidence.push_back(fmt::format("in {} rank {} is{}, rank {} is{}", place, odd.rank,
                                             origin_of(mine), usual.rank, origin_of(theirs)));
    if (odd.at(position)->finished) {
      diagnosis.evidence.push_back(
          "the call is over on both: what it computed mixes numbers that do not belong together");
    }
    return diagnosis;
  }

  static std::string_view phrase(Role role) {
    switch (role) {
      case Role::iteration:
        return "makes a call of an iteration";
      case Role::notice:
        return "says that it has inputs";
      case Role::count:
        return "counts who has inputs";
      case Role::shadow:
        return "makes a call of its main_hook";
      case Role::end:
        break;
    }
    return "makes a call of its post_hook";
  }

  const DumpCase& job_;
  std::vector<Role> roles_;  // by stack
};

}  // namespace

std::optional<Diagnosis> judge_join(const DumpCase& job) { return JoinJudge(job).judge(); }

}  // namespace rollcall::check
