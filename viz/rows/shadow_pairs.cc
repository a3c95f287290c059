#include "viz/rows/shadow_pairs.h"

#include <algorithm>
#include <map>
#include <set>

#include "viz/rows/verdict_parts.h"

namespace rollcall::viz {

namespace {

constexpr std::int64_t pairs_before = 6;
constexpr std::int64_t pairs_after = 5;

// One rank's collectives on one group, by number.
using CallsBySeq = std::map<std::int64_t, const Span*>;

class Pairs {
 public:
  explicit Pairs(const Report& report) : report_(report), broken_(broken_slot(report.verdict)) {
    std::set<Rank> joined;
    for (const Span& span : report.timeline.spans()) {
      if (span.kind == Span::Kind::collective) {
        calls_[{span.group, span.rank}][span.seq] = &span;
        if (span.shadow) {
          joined.insert(span.rank);
        }
      }
    }
    joined_.assign(joined.begin(), joined.end());
    if (const Finding* finding = finding_of(report.verdict)) {
      const auto* wrong = std::get_if<WrongResult>(&report.verdict);
      is_origin_wrong_ = finding->first_divergence || (wrong != nullptr && !wrong->variants.empty());
    }
  }

  // Returns the pair of ranks that shows the fault best: one with a difference and, among those,
  // the lowest ranks.
  std::optional<ShadowPairs> best() const {
    std::optional<ShadowPairs> best;
    for (const auto& [key, own] : calls_) {
      const auto& [group, rank] = key;
      if (std::ranges::find(joined_, rank) == joined_.end()) {
        continue;
      }
      const auto shadowed = std::ranges::find_if(own, [](const auto& call) { return call.second->shadow; });
      const std::optional<Rank> active =
          shadowed == own.end() ? std::nullopt : active_in(group, *shadowed->second);
      if (!active) {
        continue;
      }
      ShadowPairs pairs = compare(group, *active, rank, shadowed->first);
      if (!best || (pairs.first_difference && !best->first_difference)) {
        best = std::move(pairs);
      }
    }
    return best;
  }

 private:
  // Returns a rank that made a call of its own where another rank shadowed it.
  std::optional<Rank> active_in(std::uint32_t group, const Span& shadow) const {
    for (const auto& [key, calls] : calls_) {
      const auto found = key.first == group ? calls.find(shadow.seq) : calls.end();
      if (found != calls.end() && !found->second->shadow) {
        return key.second;
      }
    }
    return std::nullopt;
  }

  ShadowPairs compare(std::uint32_t group, Rank active, Rank joined, std::int64_t first) const {
    const CallsBySeq& forward = calls_.at({group, active});
    const CallsBySeq& shadow = calls_.at({group, joined});
    ShadowPairs pairs{report_.timeline.name(group), active, joined, {}, {}};
    const std::int64_t last = std::max(forward.rbegin()->first, shadow.rbegin()->first);
    for (std::int64_t seq = first; seq <= last; ++seq) {
      const Span* a = find(forward, seq);
      const Span* b = find(shadow, seq);
      pairs.rows.push_back(
          {seq, CallSequences::cell_of(a, report_.timeline), CallSequences::cell_of(b, report_.timeline)});
      pairs.rows.back().shadow.differs = differ(a, b, pairs.group, seq);
    }
    focus(pairs);
    return pairs;
  }

  // Keeps the rows that a reader needs.
  static void focus(ShadowPairs& pairs) {
    const auto first = std::ranges::find_if(pairs.rows, [](const auto& row) { return row.shadow.differs; });
    const bool has_any = first != pairs.rows.end();
    const auto center = has_any ? first - pairs.rows.begin() : std::ssize(pairs.rows) - 1;
    const auto begin = std::max<std::ptrdiff_t>(center - pairs_before, 0);
    const auto end = std::min<std::ptrdiff_t>(center + pairs_after + 1, std::ssize(pairs.rows));
    pairs.rows = {pairs.rows.begin() + begin, pairs.rows.begin() + end};
    if (has_any) {
      pairs.first_difference = static_cast<std::size_t>(center - begin);
    }
  }

  bool differ(const Span* a, const Span* b, const std::string& group, std::int64_t seq) const {
    if (a == nullptr || b == nullptr) {
      return a != b;
    }
    const bool alike =
        a->name == b->name && a->numel == b->numel && a->dtype == b->dtype && a->arguments == b->arguments;
    return !alike || (is_origin_wrong_ && broken_ && broken_->group == group && broken_->seq == seq);
  }

  static const Span* find(const CallsBySeq& calls, std::int64_t seq) {
    const auto found = calls.find(seq);
    return found == calls.end() ? nullptr : found->second;
  }

  const Report& report_;
  std::map<std::pair<std::uint32_t, Rank>, CallsBySeq> calls_;  // by group and rank
  std::vector<Rank> joined_;                                    // ascending
  std::optional<Slot> broken_;
  bool is_origin_wrong_ = false;  // the broken slot's calls look alike but come from different places
};

}  // namespace

std::optional<ShadowPairs> shadow_pairs(const Report& report) {
  const bool has_shadows = std::ranges::any_of(report.timeline.spans(), &Span::shadow);
  return has_shadows ? Pairs(report).best() : std::nullopt;
}

}  // namespace rollcall::viz
