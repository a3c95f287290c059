#include "viz/traces/trace_lanes.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "sim/base/expects.h"

namespace rollcall::viz {

namespace {

constexpr Time never = std::numeric_limits<Time>::max();
constexpr std::uint32_t no_group = std::numeric_limits<std::uint32_t>::max();  // the program's own lane

Time end_of(const Span& span) { return span.end == Span::open ? never : span.end; }

void sort_by_start(const std::vector<Span>& spans, std::vector<std::uint32_t>& order) {
  const auto key = [&spans](std::uint32_t i) {
    return std::tuple(spans[i].start, end_of(spans[i]), spans[i].rank, i);
  };
  if (!std::ranges::is_sorted(order, {}, key)) {
    std::ranges::sort(order, {}, key);
  }
}

struct OpenLane {
  std::uint32_t group = no_group;
  Time free_from = 0;  // `never` once a call that did not return is in it
};

// The lanes of one rank. A lane's id is its index + 1.
class RankLanes {
 public:
  LaneId place(const Span& span, bool calls_block) {
    const bool is_own = !span.moves_data() || (calls_block && !span.async_op);
    const std::uint32_t group = is_own ? no_group : span.group;
    auto lane = std::find_if(lanes_.begin(), lanes_.end(), [&](const OpenLane& candidate) {
      return candidate.group == group && candidate.free_from <= span.start;
    });
    if (lane == lanes_.end()) {
      lane = lanes_.insert(lane, OpenLane{group});
    }
    lane->free_from = end_of(span);
    return static_cast<LaneId>(lane - lanes_.begin()) + 1;
  }

  void describe(Rank rank, const Timeline& timeline, bool calls_block,
                std::vector<TraceLanes::Lane>& out) const {
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      const std::uint32_t group = lanes_[i].group;
      const auto repetition =
          std::count_if(lanes_.begin(), lanes_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                        [group](const OpenLane& lane) { return lane.group == group; });
      std::string name = group == no_group ? "program" : (calls_block ? "async " : "") + timeline.name(group);
      if (repetition > 1) {
        name += " (" + std::to_string(repetition) + ")";
      }
      out.push_back({rank, static_cast<LaneId>(i) + 1, std::move(name)});
    }
  }

 private:
  std::vector<OpenLane> lanes_{OpenLane{}};
};

}  // namespace

TraceLanes assign_lanes(const Timeline& timeline, Rank world_size, bool calls_block,
                        std::vector<std::uint32_t> chosen) {
  const std::vector<Span>& spans = timeline.spans();
  TraceLanes result;
  result.order = std::move(chosen);
  sort_by_start(spans, result.order);
  result.lane_of.resize(spans.size());
  std::vector<RankLanes> ranks(static_cast<std::size_t>(world_size));
  for (const std::uint32_t index : result.order) {
    const Span& span = spans[index];
    expects(span.rank >= 0 && span.rank < world_size, "a span belongs to a rank of the run");
    result.lane_of[index] = ranks[static_cast<std::size_t>(span.rank)].place(span, calls_block);
  }
  for (Rank rank = 0; rank < world_size; ++rank) {
    ranks[static_cast<std::size_t>(rank)].describe(rank, timeline, calls_block, result.lanes);
  }
  return result;
}

}  // namespace rollcall::viz
