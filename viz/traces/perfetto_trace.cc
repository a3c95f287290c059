#include "viz/traces/perfetto_trace.h"

// A trace is a sequence of TracePackets (protos/perfetto/trace/trace.proto). Ours: a descriptor per rank
// and per row, then begins and ends in order of time. Names are interned: written once, then referred to by number.
//
// Perfetto draws an arrow only forward in time, so the arrow from the rank that arrived last ends in an
// instant event inside the slice of each rank that waited for it.

#include <array>
#include <limits>
#include <ostream>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <protozero/pbf_writer.hpp>

namespace rollcall::viz {

namespace {

using Pbf = protozero::pbf_writer;

// Field numbers of Perfetto's protocol.
namespace field {
constexpr protozero::pbf_tag_type packet = 1;
constexpr protozero::pbf_tag_type timestamp = 8, sequence_id = 10, track_event = 11, interned_data = 12,
                                  sequence_flags = 13, track_descriptor = 60;
constexpr protozero::pbf_tag_type uuid = 1, name = 2, process = 3, parent_uuid = 5, child_ordering = 11,
                                  sibling_order_rank = 12;
constexpr protozero::pbf_tag_type pid = 1, process_name = 6;
constexpr protozero::pbf_tag_type debug_annotations = 4, type = 9, name_iid = 10, track_uuid = 11,
                                  event_name = 23, flow_ids = 47, terminating_flow_ids = 48;
constexpr protozero::pbf_tag_type annotation_name_iid = 1, int_value = 4, string_value = 6;
constexpr protozero::pbf_tag_type event_names = 2, annotation_names = 3;
constexpr protozero::pbf_tag_type iid = 1, interned_name = 2;
}  // namespace field

constexpr std::uint32_t our_sequence = 1;
constexpr std::uint32_t state_cleared = 1;  // sequence_flags
constexpr std::uint32_t needs_state = 2;
constexpr std::uint32_t explicit_order = 3;  // child_ordering
enum EventType : std::uint32_t { slice_begin = 1, slice_end = 2, instant = 3 };

// Annotations, by their interned number.
enum Annotation : std::uint64_t { seq = 1, numel, dtype, group, label, site, call_arguments, annotation_end };
constexpr std::array<std::string_view, annotation_end> annotation_words{
    "", "Seq", "In msg nelems", "dtype", "group", "label", "site", "arguments"};

class PerfettoWriter {
 public:
  PerfettoWriter(const Report& report, std::ostream& out, const TraceOptions& options)
      : report_(report), spans_(report.timeline.spans()), plan_(plan_trace(report, options)), out_(out) {}

  void write() {
    first_packet();
    tracks();
    events();
    flush();
  }

 private:
  struct End {
    Time time;
    std::uint32_t index;
    // The earliest is on top of the queue; at equal times, the one that began first.
    friend bool operator<(const End& a, const End& b) {
      return a.time != b.time ? a.time > b.time : a.index > b.index;
    }
  };

  static std::uint64_t rank_uuid(Rank rank) { return (static_cast<std::uint64_t>(rank) + 1) << 20U; }
  std::uint64_t lane_uuid(std::uint32_t index) const {
    return rank_uuid(spans_[index].rank) + plan_.lanes.lane_of[index];
  }

  template <typename Fill>
  void packet(const Fill& fill) {
    packet_.clear();
    Pbf writer(packet_);
    fill(writer);
    writer.add_uint32(field::sequence_id, our_sequence);
    Pbf(buffer_).add_message(field::packet, packet_);
    if (buffer_.size() > buffer_max) {
      flush();
    }
  }

  void flush() {
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }

  void first_packet() {
    packet([](Pbf& writer) {
      writer.add_uint32(field::sequence_flags, state_cleared);
      Pbf interned(writer, field::interned_data);
      for (std::uint64_t word = 1; word < annotation_end; ++word) {
        Pbf entry(interned, field::annotation_names);
        entry.add_uint64(field::iid, word);
        entry.add_string(field::interned_name, std::string(annotation_words[word]));
      }
    });
  }

  void tracks() {
    const Finding* finding = finding_of(report_.verdict);
    for (const Rank rank : plan_.ranks) {
      const bool is_culprit = finding != nullptr && finding->culprits.contains(rank);
      packet([&](Pbf& writer) {
        Pbf track(writer, field::track_descriptor);
        track.add_uint64(field::uuid, rank_uuid(rank));
        track.add_uint32(field::child_ordering, explicit_order);
        track.add_int32(field::sibling_order_rank, rank);
        Pbf process(track, field::process);
        process.add_int32(field::pid, rank + 1);  // 0 is the kernel's idle process to Perfetto
        process.add_string(field::process_name,
                           fmt::format("rank {}{}", rank, is_culprit ? " (culprit)" : ""));
      });
    }
    for (const TraceLanes::Lane& lane : plan_.lanes.lanes) {
      packet([&](Pbf& writer) {
        Pbf track(writer, field::track_descriptor);
        track.add_uint64(field::uuid, rank_uuid(lane.rank) + lane.id);
        track.add_string(field::name, lane.name);
        track.add_uint64(field::parent_uuid, rank_uuid(lane.rank));
        track.add_int32(field::sibling_order_rank, static_cast<std::int32_t>(lane.id));
      });
    }
  }

  // Begins, arrows, and ends, merged by time. At the same time, ends come first, which frees their row.
  void events() {
    begin_flow_.assign(spans_.size(), 0);
    for (std::size_t i = 0; i < plan_.arrows.size(); ++i) {
      begin_flow_[plan_.arrows[i].from] = i + 1;
    }
    std::size_t arrow = 0;
    for (const std::uint32_t index : plan_.lanes.order) {
      advance(spans_[index].start, arrow);
      begin(index);
    }
    advance(std::numeric_limits<Time>::max(), arrow);
    marks();
  }

  // Writes everything but begins up to `time`; arrows before an end at a later time.
  void advance(Time time, std::size_t& arrow) {
    while (true) {
      const bool has_end = !ends_.empty() && ends_.top().time <= time;
      const bool has_arrow = arrow < plan_.arrows.size() && plan_.arrows[arrow].time <= time;
      if (has_arrow && (!has_end || plan_.arrows[arrow].time < ends_.top().time)) {
        arrive(arrow++);
      } else if (has_end) {
        end(ends_.top());
        ends_.pop();
      } else {
        return;
      }
    }
  }

  void begin(std::uint32_t index) {
    const Span& span = spans_[index];
    const bool is_open = span.end == Span::open;
    std::string name = (is_open ? "wait " : "") + report_.timeline.name(span.name);
    if (span.kind == Span::Kind::collective) {
      fmt::format_to(std::back_inserter(name), " #{}", span.seq);
    }
    event(span.start, slice_begin, lane_uuid(index), name, [&](Pbf& event) {
      if (begin_flow_[index] != 0) {
        event.add_fixed64(field::flow_ids, begin_flow_[index]);
      }
      annotate(event, span);
    });
    if (!is_open) {
      ends_.push({span.end, index});
    }
  }

  void end(const End& end) {
    packet([&](Pbf& writer) {
      writer.add_uint64(field::timestamp, static_cast<std::uint64_t>(end.time));
      Pbf event(writer, field::track_event);
      event.add_uint32(field::type, slice_end);
      event.add_uint64(field::track_uuid, lane_uuid(end.index));
    });
  }

  void arrive(std::size_t arrow) {
    const Rank from = spans_[plan_.arrows[arrow].from].rank;
    const std::string name = plan_.arrows[arrow].is_vain
                                 ? fmt::format("rank {} waits for this rank in vain", from)
                                 : fmt::format("rank {} came", from);
    for (const std::uint32_t index : plan_.arrows[arrow].to) {
      event(plan_.arrows[arrow].time, instant, lane_uuid(index), name,
            [&](Pbf& event) { event.add_fixed64(field::terminating_flow_ids, arrow + 1); });
    }
  }

  void marks() {
    const std::string word = verdict_mark(report_);
    for (const std::uint32_t index : plan_.lanes.order) {
      if (spans_[index].end == Span::open) {
        event(plan_.end, instant, lane_uuid(index), word, [](Pbf&) {});
      }
    }
  }

  // A name's number, and whether it is new; 0 for a name that appears after the table is full, so that the table
  // stays small.
  std::pair<std::uint64_t, bool> interned(const std::string& name) {
    constexpr std::size_t names_max = 1 << 16;
    const auto known = names_.find(name);
    if (known != names_.end()) {
      return {known->second, false};
    }
    if (names_.size() == names_max) {
      return {0, false};
    }
    names_.emplace(name, names_.size() + 1);
    return {names_.size(), true};
  }

  template <typename Fill>
  void event(Time time, EventType type, std::uint64_t track, const std::string& name, const Fill& fill) {
    const auto [number, is_new] = interned(name);
    packet([&, number = number, is_new = is_new](Pbf& writer) {
      writer.add_uint64(field::timestamp, static_cast<std::uint64_t>(time));
      writer.add_uint32(field::sequence_flags, needs_state);
      if (is_new) {
        Pbf interned(writer, field::interned_data);
        Pbf word(interned, field::event_names);
        word.add_uint64(field::iid, number);
        word.add_string(field::interned_name, name);
      }
      Pbf event(writer, field::track_event);
      event.add_uint32(field::type, type);
      event.add_uint64(field::track_uuid, track);
      if (number != 0) {
        event.add_uint64(field::name_iid, number);
      } else {
        event.add_string(field::event_name, name);
      }
      fill(event);
    });
  }

  void annotate(Pbf& event, const Span& span) const {
    if (span.moves_data()) {
      number(event, seq, span.seq);
      number(event, numel, span.numel);
      text(event, dtype, std::string(scalar_type_name(span.dtype)));
    }
    if (span.kind != Span::Kind::compute) {
      text(event, group, report_.timeline.name(span.group));
    }
    if (span.kind == Span::Kind::host) {
      text(event, call_arguments, report_.timeline.name(span.arguments));
    }
    text(event, label, report_.timeline.name(span.label));
    text(event, site, report_.timeline.name(span.site));
  }

  static void number(Pbf& event, Annotation name, std::int64_t value) {
    Pbf annotation(event, field::debug_annotations);
    annotation.add_uint64(field::annotation_name_iid, name);
    annotation.add_int64(field::int_value, value);
  }
  static void text(Pbf& event, Annotation name, const std::string& value) {
    if (!value.empty()) {
      Pbf annotation(event, field::debug_annotations);
      annotation.add_uint64(field::annotation_name_iid, name);
      annotation.add_string(field::string_value, value);
    }
  }

  static constexpr std::size_t buffer_max = 1 << 16;

  const Report& report_;
  const std::vector<Span>& spans_;
  TracePlan plan_;
  std::ostream& out_;
  std::string packet_;
  std::string buffer_;
  std::priority_queue<End> ends_;
  std::vector<std::size_t> begin_flow_;                   // by span: the arrow that starts there, from 1
  std::unordered_map<std::string, std::uint64_t> names_;  // looked up, never iterated
};

}  // namespace

void perfetto_trace(const Report& report, std::ostream& out, const TraceOptions& options) {
  const TracedReport traced(report, options);
  PerfettoWriter(traced.report(), out, traced.options()).write();
}

}  // namespace rollcall::viz
