#include "sim/diagnose/dump_groups.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace rollcall::check {

namespace {

// Fewer common calls than this do not prove an offset.
constexpr std::int64_t overlap_min = 4;
constexpr std::int64_t offset_max = 256;
constexpr std::size_t fitted_tail = 512;

struct Fit {
  std::int64_t same = 0;
  std::int64_t different = 0;

  std::int64_t compared() const { return same + different; }
  bool is_bad() const { return compared() >= overlap_min && 2 * same < compared(); }
  bool is_good() const { return compared() >= overlap_min && 10 * different <= compared(); }
};

// How well the finished calls of two members agree when the second's positions are moved by `offset`.
Fit fit_of(const GroupMember& a, const GroupMember& b, std::int64_t offset) {
  Fit fit;
  const std::size_t begin = b.collectives.size() > fitted_tail ? b.collectives.size() - fitted_tail : 0;
  for (std::size_t i = begin; i < b.collectives.size(); ++i) {
    const DumpOp& op = b.op(i);
    const DumpOp* other = a.at(op.position + offset);
    if (other != nullptr && op.finished && other->finished) {
      ++(op.token == other->token ? fit.same : fit.different);
    }
  }
  return fit;
}

void move(RankOps& ops, GroupMember& member, std::int64_t offset) {
  for (const std::uint32_t index : member.collectives) {
    ops.ops[index].position += offset;
  }
  member.issued += offset;
  member.finished += offset;
}

class Aligner {
 public:
  Aligner(const JobDump& job, std::span<RankOps> ranks) : job_(job), ranks_(ranks) {}

  std::vector<GroupCalls> line_up() {
    for (std::uint32_t i = 0; i < job_.groups.size(); ++i) {
      groups_.push_back(members_of(i));
    }
    for (RankOps& ops : ranks_) {
      distribute(ops);
    }
    for (GroupCalls& group : groups_) {
      count_where_needed(group);
      for (GroupMember& member : group.members) {
        set_progress(group, member);
      }
      correct_offsets(group);
      date_dumps(group);
    }
    return std::move(groups_);
  }

 private:
  GroupCalls members_of(std::uint32_t number) {
    GroupCalls group;
    group.group = number;
    for (const Rank rank : job_.groups[number].members) {
      GroupMember member;
      member.rank = rank;
      if (RankOps* ops = ops_of(rank)) {
        member.ops = ops;
        member.has_group = std::binary_search(ops->dump->groups.begin(), ops->dump->groups.end(), number);
      }
      group.members.push_back(std::move(member));
    }
    return group;
  }

  RankOps* ops_of(Rank rank) { return find_rank(ranks_, rank, &RankOps::rank); }

  void distribute(RankOps& ops) {
    std::vector<GroupMember*> own(groups_.size(), nullptr);
    for (const std::uint32_t group : ops.dump->groups) {
      own[group] = find_rank(groups_[group].members, ops.rank(), &GroupMember::rank);
    }
    for (std::uint32_t i = 0; i < ops.ops.size(); ++i) {
      const DumpOp& op = ops.ops[i];
      if (GroupMember* member = own[op.group]; member != nullptr && op.kind == DumpOp::Kind::collective) {
        member->collectives.push_back(i);
      }
    }
  }

  // True if the counter cannot be the group's own count of collectives: it has gaps, or repeats, and
  // no record is missing in between.
  bool has_gaps(const GroupMember& member) const {
    if (member.ops == nullptr || !member.ops->dump->without_gaps || member.collectives.empty() ||
        job_.calls[member.ops->record_of(member.first()).call].is_of_gloo()) {
      return false;  // a monitored_barrier leaves a gap on all of Gloo's ranks
    }
    for (std::size_t i = 1; i < member.collectives.size(); ++i) {
      if (member.op(i).position != member.op(i - 1).position + 1) {
        return true;
      }
    }
    return false;
  }

  // True if batches of messages took numbers of the collective counter, as they did before torch 2.5: the
  // counter of messages stayed 0 then.
  static bool has_old_batches(const GroupCalls& group, const GroupMember& member) {
    return member.ops != nullptr && member.has_group &&
           std::ranges::any_of(member.ops->dump->records, [&group](const DumpRecord& record) {
             return record.group == group.group && record.is_p2p && record.p2p_seq == 0;
           });
  }

  void count_where_needed(GroupCalls& group) {
    group.counted = std::ranges::any_of(group.members, [this, &group](const GroupMember& member) {
      return has_gaps(member) || has_old_batches(group, member);
    });
    if (!group.counted) {
      return;
    }
    for (GroupMember& member : group.members) {
      for (std::size_t i = 0; i < member.collectives.size(); ++i) {
        ops_of(member.rank)->ops[member.collectives[i]].position = static_cast<std::int64_t>(i) + 1;
      }
    }
    fit_incomplete(group);
  }

  // Counts the calls of members whose ring has lost its beginning from where they fit best.
  void fit_incomplete(GroupCalls& group) {
    const GroupMember* reference = nullptr;
    const auto rank_of = [](const GroupMember& member) {
      return std::make_pair(member.ops->dump->from_start, member.collectives.size());
    };
    for (const GroupMember& member : group.members) {
      if (!member.collectives.empty() && (reference == nullptr || rank_of(member) > rank_of(*reference))) {
        reference = &member;
      }
    }
    for (GroupMember& member : group.members) {
      if (&member != reference && !member.collectives.empty() && !member.ops->dump->from_start) {
        move(*ops_of(member.rank), member, best_offset(*reference, member));
      }
    }
  }

  // Of equally good fits, the one that lets the finished calls end together, because all members have made those.
  static std::int64_t best_offset(const GroupMember& reference, const GroupMember& member) {
    const std::int64_t likely = last_finished(reference) - last_finished(member);
    std::int64_t best = likely;
    Fit best_fit = fit_of(reference, member, likely);
    for (std::int64_t step = 1; step <= offset_max; ++step) {
      for (const std::int64_t offset : {likely - step, likely + step}) {
        const Fit fit = fit_of(reference, member, offset);
        if (fit.same - 2 * fit.different > best_fit.same - 2 * best_fit.different) {
          best = offset;
          best_fit = fit;
        }
      }
    }
    return best;
  }

  static std::int64_t last_finished(const GroupMember& member) {
    std::int64_t last = member.first().position - 1;
    for (std::size_t i = 0; i < member.collectives.size() && member.op(i).finished; ++i) {
      last = member.op(i).position;
    }
    return last;
  }

  // The group's counters; null if they do not count its collectives only.
  const DumpStatus* status_of(const GroupCalls& group, const GroupMember& member) const {
    if (group.counted) {
      return nullptr;
    }
    for (const DumpOp& op : member.ops->ops) {
      if (op.group == group.group && op.kind != DumpOp::Kind::collective) {
        return nullptr;
      }
    }
    for (const DumpStatus& status : member.ops->dump->status) {
      if (status.group == group.group) {
        return &status;
      }
    }
    return nullptr;
  }

  void set_progress(const GroupCalls& group, GroupMember& member) const {
    if (member.ops == nullptr) {
      return;
    }
    member.has_group |= !member.collectives.empty();
    if (member.collectives.empty()) {
      // A complete ring, or an unknown group, proves that the member has made none. Otherwise it is unknown.
      member.issued = member.ops->dump->from_start || !member.has_group ? 0 : -1;
      member.finished = member.issued;
      return;
    }
    member.issued = member.last().position;
    member.finished = last_finished(member);
    if (const DumpStatus* status = status_of(group, member)) {
      const bool ring_says_nothing = !member.first().finished;
      member.issued = std::max(member.issued, status->enqueued);
      if (ring_says_nothing && status->completed >= 0 && status->completed < member.finished) {
        member.finished = status->completed;
      }
    }
  }

  // Every dump is of its own moment. A call without a root ends for no rank before all have made it, so a dump that
  // lacks a call that a peer has finished was written before that.
  static std::int64_t last_made_by_all(const JobDump& job, const GroupMember& member) {
    for (std::size_t i = member.collectives.size(); i-- > 0;) {
      const DumpOp& op = member.op(i);
      if (op.proven && !has_root(job.calls[member.ops->record_of(op).call].op)) {
        return op.position;
      }
    }
    return -1;
  }

  void date_dumps(GroupCalls& group) const {
    if (group.counted) {
      return;  // numbers that are counted or fitted prove nothing
    }
    std::int64_t made_by_all = -1;
    const GroupMember* witness = nullptr;
    for (const GroupMember& member : group.members) {
      if (const std::int64_t last = last_made_by_all(job_, member); last > made_by_all) {
        made_by_all = last;
        witness = &member;
      }
    }
    for (GroupMember& member : group.members) {
      const bool is_behind = member.ops != nullptr && member.issued >= 0 && member.issued < made_by_all &&
                             (!member.collectives.empty() || member.ops->dump->from_start);
      if (is_behind &&
          fit_of(*witness, member, 0).different == 0) {  // otherwise their numbers are not comparable
        member.is_older = true;
        member.issued = made_by_all;
      }
    }
  }

  // True if `member` has finished a call that `other` has not made: impossible with counters that start together.
  bool is_ahead(const GroupMember& member, const GroupMember& other) const {
    return has_finished_after(job_, member, other.issued);
  }

  // True if the calls that would meet were made at about the same time. If all calls are alike, an older dump also
  // looks like a counter that is off, but its calls are older by as many steps as the counter seems to be off.
  static bool fits_in_time(const GroupMember& reference, const GroupMember& member, std::int64_t offset) {
    const auto time_of = [](const GroupMember& m, const DumpOp& op) {
      return m.ops->record_of(op).created_ns;
    };
    std::vector<std::int64_t> apart;
    for (std::size_t i = 0; i < member.collectives.size(); ++i) {
      const DumpOp* other = reference.at(member.op(i).position + offset);
      const std::int64_t mine = time_of(member, member.op(i));
      const std::int64_t theirs = other == nullptr ? 0 : time_of(reference, *other);
      if (mine != 0 && theirs != 0) {
        apart.push_back(std::abs(mine - theirs));
      }
    }
    std::vector<std::int64_t> steps;
    for (std::size_t i = 1; i < reference.collectives.size(); ++i) {
      steps.push_back(time_of(reference, reference.op(i)) - time_of(reference, reference.op(i - 1)));
    }
    if (apart.empty() || steps.empty()) {
      return true;
    }
    return static_cast<double>(median(std::move(apart))) <=
           static_cast<double>(median(std::move(steps))) * static_cast<double>(std::abs(offset)) / 2;
  }

  // Corrects counters that are off by a constant on some ranks: their finished calls disagree with the
  // others', or run ahead of them, and agree when moved.
  void correct_offsets(GroupCalls& group) {
    const GroupMember* reference = typical_member(group);
    if (group.counted || reference == nullptr) {
      return;
    }
    for (GroupMember& member : group.members) {
      if (&member == reference || member.collectives.empty() ||
          (!fit_of(*reference, member, 0).is_bad() && !is_ahead(member, *reference) &&
           !is_ahead(*reference, member))) {
        continue;
      }
      const std::int64_t offset = best_offset(*reference, member);
      if (fit_of(*reference, member, offset).is_good() && fits_in_time(*reference, member, offset)) {
        move(*ops_of(member.rank), member, offset);
      }
    }
  }

  // The first member whose last finished calls are the most common ones.
  static const GroupMember* typical_member(const GroupCalls& group) {
    std::map<std::vector<std::uint64_t>, std::pair<std::size_t, const GroupMember*>> classes;
    const GroupMember* best = nullptr;
    std::size_t best_count = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    common_range(group, begin, end);
    begin = std::max(begin, end - 16);
    for (const GroupMember& member : group.members) {
      if (member.collectives.empty() || end - begin < overlap_min) {
        continue;
      }
      std::vector<std::uint64_t> tokens;
      for (std::int64_t position = begin; position < end; ++position) {
        const DumpOp* op = member.at(position);
        tokens.push_back(op == nullptr ? 0 : op->token);
      }
      auto& [count, first] = classes[tokens];
      first = first == nullptr ? &member : first;
      if (++count > best_count) {
        best_count = count;
        best = first;
      }
    }
    return best;
  }

  // Positions that all members with records have finished: [begin, end).
  static void common_range(const GroupCalls& group, std::int64_t& begin, std::int64_t& end) {
    bool is_first = true;
    for (const GroupMember& member : group.members) {
      if (member.collectives.empty()) {
        continue;
      }
      begin = is_first ? member.first().position : std::max(begin, member.first().position);
      end = is_first ? member.finished + 1 : std::min(end, member.finished + 1);
      is_first = false;
    }
  }

  const JobDump& job_;
  std::span<RankOps> ranks_;
  std::vector<GroupCalls> groups_;
};

}  // namespace

const DumpOp* GroupMember::at(std::int64_t position) const {
  if (collectives.empty() || position < first().position) {
    return nullptr;
  }
  const auto guess = static_cast<std::size_t>(position - first().position);  // exact where there are no gaps
  if (guess < collectives.size() && op(guess).position == position) {
    return &op(guess);
  }
  const auto place = std::ranges::lower_bound(
      collectives, position, {}, [this](std::uint32_t index) { return ops->ops[index].position; });
  return place != collectives.end() && ops->ops[*place].position == position ? &ops->ops[*place] : nullptr;
}

const GroupMember* GroupCalls::member(Rank rank) const {
  return find_rank(members, rank, &GroupMember::rank);
}

std::vector<GroupCalls> line_up(const JobDump& job, std::span<RankOps> ranks) {
  return Aligner(job, ranks).line_up();
}

std::int64_t median(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

bool has_finished_after(const JobDump& job, const GroupMember& member, std::int64_t position) {
  for (std::size_t i = member.collectives.size(); i-- > 0;) {
    const DumpOp& op = member.op(i);
    if (op.position <= position) {
      return false;
    }
    if (op.finished && !has_root(job.calls[member.ops->record_of(op).call].op)) {
      return true;
    }
  }
  return false;
}

std::int64_t seq_of(const GroupCalls& group, std::int64_t position) {
  std::map<std::int64_t, std::size_t> votes;
  for (const GroupMember& member : group.members) {
    if (const DumpOp* op = member.at(position)) {
      ++votes[member.ops->record_of(*op).collective_seq];
    }
  }
  const auto most = std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; });
  return most == votes.end() ? position : most->first;
}

}  // namespace rollcall::check
