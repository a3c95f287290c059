// All-to-alls whose members do not take out what others put in. Recorders store how much each rank passes; how it is
// split among the others only where the call takes lists of tensors.

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "sim/diagnose/dump_case.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

namespace {

// In elements.
struct Sizes {
  std::int64_t in = 0;
  std::int64_t out = 0;

  friend bool operator==(const Sizes&, const Sizes&) = default;
};

struct Member {
  Rank rank = 0;
  const DumpCall* call = nullptr;
  Sizes sizes{};
};

// A part of which more is sent than is expected, or less.
struct Misfit {
  Rank from = 0;
  Rank to = 0;
  std::int64_t sent = 0;
  std::int64_t expected = 0;
};

std::string sizes_phrase(const Sizes& sizes) {
  return fmt::format("{} in and takes {} out", elements(sizes.in), sizes.out);
}

class SplitsJudge {
 public:
  SplitsJudge(const DumpCase& job, const WaitNode& node) : job_(job), node_(node) {
    const DumpGroup& recorded = job.view.job.groups[node.group];
    const bool are_members_listed = !recorded.is_by_use && !recorded.is_everybody;
    if (node.kind != DumpOp::Kind::collective || !shapes_may_differ(recorded_call(job, node).op) ||
        !are_members_listed) {
      return;
    }
    const GroupCalls& group = job.view.calls_of(node.group);
    for (const GroupMember& member : group.members) {
      const DumpOp* op = member.at(node.position);
      if (op == nullptr || op->part_count != 1 || op->token != node.ops.front()->token) {
        return;
      }
      const DumpCall& call = job.view.job.calls[member.ops->record_of(*op).call];
      const Sizes sizes{elements_of(call.inputs), elements_of(call.outputs)};
      if (call.inputs.empty() || call.outputs.empty() || sizes.in < 0 || sizes.out < 0) {
        return;
      }
      members_.push_back({member.rank, &call, sizes});
    }
    is_known_ = members_.size() > 1 && members_.size() == recorded.members.size();
    if (is_known_) {
      add_up();
      compare_parts();
    }
  }

  // True if the sizes cannot fit, whatever the splits are.
  bool is_proven() const { return is_known_ && (total_.in != total_.out || !misfits_.empty()); }

  // The one member whose sizes differ from those of all others, which are alike.
  const Member* odd_one() const {
    constexpr std::size_t members_min = 3;  // of two, either may be wrong
    if (!is_known_ || members_.size() < members_min) {
      return nullptr;
    }
    for (const Member& odd : members_) {
      const Member& usual = &odd == &members_.front() ? members_.back() : members_.front();
      const bool others_agree = std::ranges::all_of(
          members_, [&](const Member& member) { return (&member == &odd) != (member.sizes == usual.sizes); });
      if (others_agree) {
        return &odd;
      }
    }
    return nullptr;
  }

  Diagnosis judge() const {
    Diagnosis diagnosis;
    Finding& finding = diagnosis.finding;
    finding.kind = FindingKind::split_mismatch;
    diagnosis.confidence = Confidence::medium;  // either end of a part may be wrong
    set_place(job_, node_, {}, diagnosis);
    const std::string place = call_phrase(finding.at->call);
    const Member* odd = odd_one();
    if (odd != nullptr) {
      finding.culprits = {odd->rank};
      const Member& other = odd == &members_.front() ? members_.back() : members_.front();
      finding.headline =
          fmt::format("rank {} passes other sizes to {} than the other ranks do", odd->rank, place);
      finding.cause = fmt::format("rank {} puts {}; each other rank puts {}", odd->rank,
                                  sizes_phrase(odd->sizes), sizes_phrase(other.sizes));
    } else {
      blame_waiting(diagnosis);
      finding.headline = fmt::format("{} in {}, and its sizes do not fit",
                                     with_verb(ranks_of(node_), "waits", "wait"), place);
      finding.cause = "a rank is sent more or less than it expects";
    }
    finding.advice =
        "let the ranks exchange their split sizes first: an all_to_all_single of the counts, then one of the "
        "data";
    add_evidence(diagnosis);
    return diagnosis;
  }

 private:
  void add_up() {
    for (const Member& member : members_) {
      const bool overflows = __builtin_add_overflow(total_.in, member.sizes.in, &total_.in) ||
                             __builtin_add_overflow(total_.out, member.sizes.out, &total_.out);
      is_known_ = is_known_ && !overflows;
    }
  }

  // Of a call with lists of tensors, one for each member.
  void compare_parts() {
    const bool are_lists = std::ranges::all_of(members_, [this](const Member& member) {
      return member.call->inputs.size() == members_.size() && member.call->outputs.size() == members_.size();
    });
    if (!are_lists) {
      return;
    }
    for (std::size_t from = 0; from < members_.size(); ++from) {
      for (std::size_t to = 0; to < members_.size(); ++to) {
        const std::int64_t sent = elements_of({members_[from].call->inputs[to]});
        const std::int64_t expected = elements_of({members_[to].call->outputs[from]});
        if (sent != expected) {
          misfits_.push_back({members_[from].rank, members_[to].rank, sent, expected});
        }
      }
    }
  }

  // Without a member that differs from all others, those are named that have a part in each misfit, or that wait.
  void blame_waiting(Diagnosis& diagnosis) const {
    RankSet ranks = ranks_of(node_);
    for (const Misfit& misfit : misfits_) {
      const RankSet ends{std::min(misfit.from, misfit.to), std::max(misfit.from, misfit.to)};
      ranks = &misfit == &misfits_.front() ? ends : intersection(ranks, ends);
    }
    diagnosis.finding.culprits = ranks.empty() ? ranks_of(node_) : ranks;
    diagnosis.finding.tie = diagnosis.finding.culprits.size() > 1;
  }

  void add_evidence(Diagnosis& diagnosis) const {
    if (!misfits_.empty()) {
      const Misfit& first = misfits_.front();
      diagnosis.evidence.push_back(fmt::format("rank {} sends {} to rank {}, which expects {}", first.from,
                                               elements(first.sent), first.to, first.expected));
    } else if (total_.in != total_.out) {
      diagnosis.evidence.push_back(
          fmt::format("together, the ranks put {} in and take {} out", elements(total_.in), total_.out));
    } else {
      diagnosis.alternatives = {FindingKind::stall_all_arrived};
    }
    if (misfits_.empty()) {
      diagnosis.would_settle.push_back(splits_to_compare(diagnosis.finding.at->call));
    } else {
      diagnosis.would_settle.push_back(
          fmt::format("the split sizes that each rank passes to {}, and where they come from",
                      call_phrase(diagnosis.finding.at->call)));
    }
  }

  const DumpCase& job_;
  const WaitNode& node_;
  std::vector<Member> members_;  // by rank inside the group
  bool is_known_ = false;        // of all members
  Sizes total_{};
  std::vector<Misfit> misfits_;
};

}  // namespace

std::string splits_to_compare(const Call& call) {
  return fmt::format("the split sizes that each rank passes to {}: recorders store only their sums",
                     call_phrase(call));
}

std::optional<Diagnosis> judge_splits(const DumpCase& job) {
  for (const std::size_t index : job.roots.complete) {
    const SplitsJudge judge(job, job.waits.nodes[index]);
    if (judge.is_proven()) {
      return judge.judge();
    }
  }
  return std::nullopt;
}

std::optional<Diagnosis> suspect_splits(const DumpCase& job, const WaitNode& node) {
  const SplitsJudge judge(job, node);
  return judge.odd_one() != nullptr ? std::optional(judge.judge()) : std::nullopt;
}

}  // namespace rollcall::check
