// Judges Join's hooks by the stacks of calls that met: a rank that ran out of inputs repeats the calls of an iteration,
// and between iterations it counts the ranks that still have inputs. If one of its counts meets a call of an iteration,
// a hook makes too few calls or too many. If the calls agree in size, everything finishes, and only the values are
// wrong.

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "sim/diagnose/dump_case.h"
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
  return in_exit ? role : Role::iteration;
}

struct RoleRow {
  bool is_joined;           // the rank has run out of inputs
  int met;                  // the same for roles whose calls should meet
  std::string_view phrase;  // what the rank does
};

// In the order of Role.
constexpr RoleRow role_rows[] = {{false, 1, "makes a call of an iteration"},
                                 {false, 0, "says that it has inputs"},
                                 {true, 0, "counts who has inputs"},
                                 {true, 1, "makes a call of its main_hook"},
                                 {true, 2, "makes a call of its post_hook"}};
static_assert(std::size(role_rows) == static_cast<std::size_t>(Role::end) + 1, "every role has a row");

class JoinJudge {
 public:
  explicit JoinJudge(const DumpCase& job) : job_(job) {
    for (const DumpStack& stack : job.view.job.stacks) {
      roles_.push_back(role_of(stack));
    }
  }

  std::optional<Diagnosis> judge() const {
    if (std::ranges::find(roles_, Role::count) == roles_.end()) {
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
  const RoleRow& role(const GroupMember& member, const DumpOp& op) const {
    return role_rows[static_cast<std::size_t>(roles_[member.ops->record_of(op).stack])];
  }

  std::optional<Diagnosis> judge(const GroupCalls& group) const {
    std::set<std::int64_t> positions;  // where some member has joined
    for (const GroupMember& member : group.members) {
      for (std::size_t i = 0; i < member.collectives.size(); ++i) {
        if (role(member, member.op(i)).is_joined) {
          positions.insert(member.op(i).position);
        }
      }
    }
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
      if (op == nullptr || usual == nullptr || !role(member, *op).is_joined) {
        continue;
      }
      if (role(member, *op).met != role(*usual, *usual->at(position)).met) {
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
    for (const DumpOp* op = odd.at(first - 1); op != nullptr && role(odd, *op).is_joined;
         op = odd.at(first - 1)) {
      --first;
    }
    const DumpOp* met = usual.at(first);
    return met == nullptr || roles_[usual.ops->record_of(*met).stack] != Role::iteration;
  }

  // The member that decides which call belongs here: one with inputs. If none is left, one of the majority.
  const GroupMember* usual_at(const GroupCalls& group, std::int64_t position) const {
    std::map<int, std::pair<std::size_t, const GroupMember*>> kinds;
    for (const GroupMember& member : group.members) {
      const DumpOp* op = member.at(position);
      if (op == nullptr || member.ops->record_of(*op).stack == 0) {
        continue;
      }
      if (!role(member, *op).is_joined) {
        return &member;
      }
      auto& [count, first] = kinds[role(member, *op).met];
      ++count;
      first = first == nullptr ? &member : first;
    }
    const auto most = std::ranges::max_element(kinds, {}, [](const auto& kind) { return kind.second.first; });
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
        fmt::format("{} {}, and {} {}", ranks_phrase({odd.rank}), role(odd, *odd.at(position)).phrase,
                    ranks_phrase({usual.rank}), role(usual, *usual.at(position)).phrase);
    finding.advice = "make the main_hook of the joinable issue exactly the collectives of one iteration";
    if (role(usual, *usual.at(position)).is_joined) {  // the majority need not be right
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

  const DumpCase& job_;
  std::vector<Role> roles_;  // by stack
};

}  // namespace

std::optional<Diagnosis> judge_join(const DumpCase& job) { return JoinJudge(job).judge(); }

}  // namespace rollcall::check
