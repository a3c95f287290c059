#include "viz/rows/message_pairs.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace rollcall::viz {

namespace {

constexpr std::size_t messages_before = 3;
constexpr std::size_t messages_after = 4;

using Ends = std::vector<const Span*>;

struct Way {  // from one rank to another
  Ends sends;
  Ends receives;

  std::size_t size() const { return std::max(sends.size(), receives.size()); }
};

// Sends and receives with different tags do not match.
using WayKey = std::tuple<Rank, Rank, std::uint32_t, std::uint32_t>;

std::map<WayKey, Way> ways_of(const Timeline& timeline) {
  std::map<WayKey, Way> ways;
  for (const Span& span : timeline.spans()) {
    if (span.kind != Span::Kind::message || span.peer < 0) {
      continue;
    }
    const bool sends = timeline.name(span.name) == "send";
    const bool has_tag = timeline.name(span.arguments).starts_with("tag ");
    Way& way = ways[{sends ? span.rank : span.peer, sends ? span.peer : span.rank, span.group,
                     has_tag ? span.arguments : 0}];
    (sends ? way.sends : way.receives).push_back(&span);
  }
  for (auto& [key, way] : ways) {
    for (Ends* ends : {&way.sends, &way.receives}) {
      std::ranges::stable_sort(*ends, {},
                               [](const Span* span) { return std::pair(span->called(), span->seq); });
    }
  }
  return ways;
}

const Span* end_at(const Ends& ends, std::size_t index) {
  return index < ends.size() ? ends[index] : nullptr;
}

CallSequences::Cell end_cell(const Span* span, const Timeline& timeline) {
  CallSequences::Cell cell = CallSequences::cell_of(span, timeline);
  cell.differs = span == nullptr;
  return cell;
}

MessagePairs pairs_of(const WayKey& key, const Way& way, std::size_t first_open, const Timeline& timeline) {
  MessagePairs pairs{std::get<0>(key), std::get<1>(key), {}, 0};
  const std::size_t begin = first_open - std::min(first_open, messages_before);
  const std::size_t end = std::min(way.size(), first_open + messages_after);
  pairs.later = way.size() - end;
  for (std::size_t i = begin; i < end; ++i) {
    const Span* const sent = end_at(way.sends, i);
    const Span* const received = end_at(way.receives, i);
    pairs.rows.push_back({static_cast<std::int64_t>(i), sent != nullptr ? sent->seq : -1,
                          received != nullptr ? received->seq : -1, end_cell(sent, timeline),
                          end_cell(received, timeline)});
  }
  return pairs;
}

}  // namespace

std::vector<MessagePairs> message_pairs(const Report& report) {
  const Finding* finding = finding_of(report.verdict);
  std::vector<MessagePairs> result;
  for (const auto& [key, way] : ways_of(report.timeline)) {
    const auto is_open = [](const Span* span) { return span != nullptr && span->end == Span::open; };
    for (std::size_t i = 0; i < way.size(); ++i) {
      if (is_open(end_at(way.sends, i)) || is_open(end_at(way.receives, i))) {
        result.push_back(pairs_of(key, way, i, report.timeline));
        break;
      }
    }
  }
  std::ranges::stable_partition(result, [finding](const MessagePairs& pairs) {
    return finding != nullptr &&
           (finding->culprits.contains(pairs.sender) || finding->culprits.contains(pairs.receiver));
  });
  return result;
}

}  // namespace rollcall::viz
