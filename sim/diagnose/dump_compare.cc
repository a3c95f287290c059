#include "sim/diagnose/dump_compare.h"

#include <algorithm>
#include <limits>

#include "sim/diagnose/installed_code.h"

namespace rollcall::check {

namespace {

constexpr std::int64_t shift_max = 16;
constexpr std::int64_t look_back_max = 256;
constexpr std::int64_t pause_ratio = 4;

// One member's calls of the group by position, continued by habit beyond its last call.
class Track {
 public:
  Track(const DumpView& view, const GroupMember& member) : view_(view), member_(member) {
    if (!member.collectives.empty()) {
      last_ = member.last().position;
    }
  }

  const DumpOp* at(std::int64_t position) const { return member_.at(position); }
  std::int64_t last() const { return last_; }

  const DumpFrame* site(const DumpOp& op) const { return user_frame(view_.job, member_.ops->record_of(op)); }
  bool has_stack(const DumpOp& op) const { return member_.ops->record_of(op).stack != 0; }

  // Nanoseconds since the rank's previous call on any group; -1: not known.
  std::int64_t pause_before(const DumpOp& op) const {
    if (&op == member_.ops->ops.data()) {
      return -1;
    }
    const std::int64_t created = member_.ops->record_of(op).created_ns;
    const std::int64_t before = member_.ops->record_of(*(&op - 1)).created_ns;
    return created != 0 && before != 0 ? created - before : -1;
  }

  // The call that would have come at `position`, judging by the calls that followed the same calls earlier.
  const DumpOp* usual_at(std::int64_t position) const {
    if (position <= last_) {
      return at(position);
    }
    const std::int64_t example = example_of_end();
    return example == 0 ? nullptr : at(example + (position - last_));
  }

 private:
  // The latest earlier position with the longest past in common with the last call; 0 if there is none.
  std::int64_t example_of_end() const {
    std::int64_t best = 0;
    std::int64_t best_length = 0;
    for (std::int64_t position = last_ - 1; position > std::max<std::int64_t>(last_ - look_back_max, 0);
         --position) {
      std::int64_t length = 0;
      while (length < shift_max && same(at(position - length), at(last_ - length))) {
        ++length;
      }
      if (length > best_length) {
        best = position;
        best_length = length;
      }
    }
    return best;
  }

  static bool same(const DumpOp* a, const DumpOp* b) {
    return a != nullptr && b != nullptr && a->token == b->token;
  }

  const DumpView& view_;
  const GroupMember& member_;
  std::int64_t last_ = 0;
};

struct Score {
  int same = 0;
  int different = 0;
  int known = 0;      // of `same`: compared with calls that were made, not just expected
  int elsewhere = 0;  // of `same`: from another line

  bool holds() const { return same > 0 && different == 0; }
};

class ShiftFinder {
 public:
  ShiftFinder(const DumpView& view, const GroupMember& odd, const GroupMember& usual, std::int64_t position)
      : odd_(view, odd), usual_(view, usual), position_(position) {}

  Shift find() {
    const std::int64_t begin = first_difference();
    Shift shift = has_stacks() ? with_stacks(begin) : without_stacks(begin);
    const bool is_recorded = odd_.at(begin - 1) != nullptr && usual_.at(begin - 1) != nullptr;
    shift.is_older = begin > 1 && begin < position_ && !is_recorded;
    return shift;
  }

 private:
  // The first pair of calls that contradict each other, or of those right before that one the first that came from
  // different places. Call sites are compared only there: a rank may make a call from a line of its own without being
  // wrong.
  std::int64_t first_difference() const {
    std::int64_t begin = position_;
    for (std::int64_t p = std::max<std::int64_t>(1, position_ - look_back_max); p < begin; ++p) {
      const DumpOp* a = odd_.at(p);
      const DumpOp* b = usual_.at(p);
      begin = a != nullptr && b != nullptr && a->token != b->token ? p : begin;
    }
    while (begin > 1 && position_ - begin < look_back_max && differs(begin - 1)) {
      --begin;
    }
    return begin;
  }

  bool differs(std::int64_t position) const {
    const DumpOp* a = odd_.at(position);
    const DumpOp* b = usual_.at(position);
    if (a == nullptr || b == nullptr) {
      return false;
    }
    return a->token != b->token || !same_site(*a, *b);
  }

  bool same_site(const DumpOp& a, const DumpOp& b) const { return same_place(odd_.site(a), usual_.site(b)); }

  static bool same_place(const DumpFrame* a, const DumpFrame* b) {
    return a == nullptr || b == nullptr ? a == b : *a == *b;
  }

  // True if this rank recorded stacks at all: calls that autograd launches have none even then.
  bool has_stacks() const {
    for (std::int64_t p = position_ - look_back_max; p <= odd_.last(); ++p) {
      const DumpOp* op = odd_.at(p);
      if (op != nullptr && odd_.has_stack(*op)) {
        return true;
      }
    }
    return false;
  }

  // Compares `begin + ahead` of odd with `begin + behind` of usual, and so on.
  Score compare(std::int64_t begin, std::int64_t ahead, std::int64_t behind, bool expect) const {
    Score score;
    for (std::int64_t i = 0; i < look_back_max; ++i) {
      const DumpOp* a = odd_.at(begin + ahead + i);
      const DumpOp* known = usual_.at(begin + behind + i);
      const DumpOp* b = known == nullptr && expect ? usual_.usual_at(begin + behind + i) : known;
      if (a == nullptr || b == nullptr) {
        break;
      }
      const bool same = a->token == b->token;
      if (!same && known == nullptr) {
        break;  // habits end: an epoch does
      }
      ++(same ? score.same : score.different);
      score.known += same && known != nullptr ? 1 : 0;
      score.elsewhere += same && !same_site(*a, *b) ? 1 : 0;
    }
    return score;
  }

  bool goes_on_in_step(std::int64_t begin) const {
    const Score score = compare(begin, 1, 1, false);
    return score.same > 0 && score.same > score.different;
  }

  Shift with_stacks(std::int64_t begin) const {
    // If sizes happen to agree while the places do not, the ranks are shifted, not in step.
    if (begin == position_ && goes_on_in_step(begin)) {
      return {};
    }
    Shift best;
    int fewest = std::numeric_limits<int>::max();
    // A reading in which all calls come from other lines than their counterparts does not count.
    const auto offer = [&](const Score& score, Shift::Kind kind, std::int64_t count) {
      if (score.elsewhere < std::min(fewest, score.same)) {
        fewest = score.elsewhere;
        best = {kind, begin, count};
      } else if (score.elsewhere == fewest && kind != best.kind && best.rival == Shift::Kind::none) {
        best.rival = kind;
      }
    };
    if (is_one_more_iteration(begin)) {
      offer({.same = 1}, Shift::Kind::extra, 1);
    }
    // Of the readings that fit, the one with the most calls from the same lines; on a tie the smallest.
    for (std::int64_t count = 1; count <= shift_max; ++count) {
      const Score extra = compare(begin, count, 0, true);
      const Score skipped = compare(begin, 0, count, true);
      const bool is_likelier = extra.same >= skipped.same || extra.elsewhere < skipped.elsewhere;
      if (extra.holds() && extra.known > 0 && is_likelier) {
        offer(extra, is_repetition(begin, count) ? Shift::Kind::repeated : Shift::Kind::extra, count);
      }
      if (skipped.holds() && !comes_too_soon(begin)) {
        offer(skipped, Shift::Kind::skipped, count);
      }
    }
    return best;
  }

  // Without stacks, only calls that were really made count, and it takes more than one: a single call fits
  // too many readings.
  Shift without_stacks(std::int64_t begin) const {
    Shift shift;
    if (goes_on_in_step(begin)) {
      return shift;
    }
    for (std::int64_t count = 1; count <= shift_max; ++count) {
      const Score extra = compare(begin, count, 0, false);
      const Score skipped = compare(begin, 0, count, false);
      const Score& score = extra.holds() ? extra : skipped;
      if (score.holds() && score.same > 1) {
        const bool is_unclear = extra.holds() ? repeats_itself(begin, count) : comes_too_soon(begin);
        return {is_unclear      ? Shift::Kind::unclear
                : extra.holds() ? Shift::Kind::extra
                                : Shift::Kind::skipped,
                begin, count};
      }
      if (score.holds() && shift.kind == Shift::Kind::none) {
        shift = {Shift::Kind::unclear, begin, count};
      }
    }
    return shift;
  }

  // True if the last call is the one before it once more, of a loop that has made it before as well: the rank's inputs
  // lasted longer. No call shows yet how its program goes on.
  bool is_one_more_iteration(std::int64_t position) const {
    const DumpOp* last = odd_.at(position);
    return last != nullptr && position == odd_.last() && is_again(odd_.at(position - 1), *last) &&
           is_again(odd_.at(position - 2), *last);
  }

  // True if `op` is the call `before`, made again from the same line.
  bool is_again(const DumpOp* before, const DumpOp& op) const {
    return before != nullptr && before->token == op.token && same_place(odd_.site(*before), odd_.site(op));
  }

  // A call that opens the next step comes after that step's work, as it did before. A call that comes in a
  // fraction of that time still belongs to the previous step.
  bool comes_too_soon(std::int64_t position) const {
    const DumpOp* op = odd_.at(position);
    const std::int64_t pause = op == nullptr ? -1 : odd_.pause_before(*op);
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    int examples = 0;
    for (std::int64_t p = position - 1; pause >= 0 && p > 0 && p > position - look_back_max; --p) {
      const DumpOp* before = odd_.at(p);
      if (is_again(before, *op) && odd_.pause_before(*before) >= 0) {
        least = std::min(least, odd_.pause_before(*before));
        ++examples;
      }
    }
    return examples > 1 && pause < least / pause_ratio;
  }

  // Also true if the ring no longer holds the calls before: a repetition cannot be ruled out then.
  bool repeats_itself(std::int64_t begin, std::int64_t count) const {
    for (std::int64_t i = 0; i < count; ++i) {
      const DumpOp* again = odd_.at(begin + i);
      const DumpOp* before = odd_.at(begin + i - count);
      if (again == nullptr || (before != nullptr && again->token != before->token)) {
        return false;
      }
    }
    return true;
  }

  // Code that starts a step again makes the previous calls once more and continues from there. A call that
  // merely looks like its predecessor comes from another line, and the program continues like the others'.
  bool is_repetition(std::int64_t begin, std::int64_t count) const {
    if (!repeats_itself(begin, count)) {
      return false;
    }
    const DumpOp* before = odd_.at(begin - count);
    if (before != nullptr && same_place(odd_.site(*odd_.at(begin)), odd_.site(*before))) {
      return true;
    }
    const DumpOp* next = odd_.at(begin + count);
    const DumpOp* counterpart = usual_.at(begin);
    return next == nullptr || counterpart == nullptr || !same_site(*next, *counterpart);
  }

  Track odd_;
  Track usual_;
  std::int64_t position_;
};

}  // namespace

Shift find_shift(const DumpView& view, const GroupMember& odd, const GroupMember& usual,
                 std::int64_t position) {
  return ShiftFinder(view, odd, usual, position).find();
}

const DumpFrame* user_frame(const JobDump& job, const DumpRecord& record) {
  for (const DumpFrame& frame : job.stacks[record.stack]) {
    if (!is_installed_code(frame.file)) {
      return &frame;
    }
  }
  return nullptr;
}

bool is_join_shadow(const JobDump& job, const DumpRecord& record) {
  const DumpStack& stack = job.stacks[record.stack];
  return std::ranges::any_of(stack, [](const DumpFrame& frame) {
    const bool in_join = frame.file.ends_with("algorithms/join.py");
    return (in_join && frame.function == "__exit__") || frame.function == "main_hook" ||
           frame.function.starts_with("_match_all_reduce_for") ||
           frame.function.starts_with("_match_unused_params");
  });
}

}  // namespace rollcall::check
