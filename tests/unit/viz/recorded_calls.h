#pragma once

// Handmade timelines, one call at a time.

#include <string_view>

#include "sim/report/report.h"

namespace rollcall::samples {

struct RecordedCall {
  Rank rank = 0;
  std::int64_t seq = 0;
  Time start = 0;
  Time end = Span::open;
  std::string_view op = "all_reduce";
  std::string_view group = "world";
  std::int64_t numel = 4;
  std::string_view label = "";
  std::string_view arguments = "SUM";
};

inline Span span_of(Report& report, const RecordedCall& call) {
  Span span;
  span.rank = call.rank;
  span.seq = call.seq;
  span.start = call.start;
  span.end = call.end;
  span.numel = call.numel;
  span.name = report.timeline.intern(call.op);
  span.group = report.timeline.intern(call.group);
  span.label = report.timeline.intern(call.label);
  span.arguments = report.timeline.intern(call.arguments);
  return span;
}

inline void record(Report& report, const RecordedCall& call) { report.timeline.add(span_of(report, call)); }

// Adds a send or a receive; `peer` is -1 for a receive from any source.
inline void record_message(Report& report, Rank rank, Rank peer, std::string_view op, Time start,
                           Time end = Span::open) {
  Span span = span_of(report, {.rank = rank, .start = start, .end = end, .op = op, .arguments = ""});
  span.kind = Span::Kind::message;
  span.peer = peer;
  report.timeline.add(span);
}

// Adds `count` calls of a nanosecond each on the world, by every rank at the same times.
inline void record_common(Report& report, std::int64_t count) {
  for (std::int64_t seq = 0; seq < count; ++seq) {
    for (Rank rank = 0; rank < report.world_size; ++rank) {
      record(report, {.rank = rank, .seq = seq, .start = 10 * seq, .end = 10 * seq + 5});
    }
  }
}

}  // namespace rollcall::samples
