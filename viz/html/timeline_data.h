#pragma once

// A timeline packed for the report's script, which unpacks it in viz/html/timeline/data.js. One text:
//
//   a line of JSON, described at Header in timeline_data.cc, ended by a newline
//   slices: by story, lane, and start. LEB128 numbers, signed ones in zigzag encoding:
//     start - start of the lane's last slice; 0 if it never returned, else 1 + duration; index of its call;
//     signed seq - seq of the lane's last slice; for messages 0 if the peer is unknown, else 1 + signed peer - rank
//   arrivals: for each group of the header and each seq of it that a rank reached, ascending: seq - previous seq;
//     the rank that arrived last; signed time - previous time
//   arrows between messages' ends: rank of the later, rank of the earlier, time - time of the previous arrow
//
// A story is what one rank did; ranks that did the same at the same times share a story.

#include <string>
#include <string_view>

#include "sim/report/report.h"

namespace rollcall::viz {

std::string timeline_data(const Report& report);

// Returns the same, compressed with gzip, as base64.
std::string packed_timeline(const Report& report);

std::string base64(std::string_view bytes);

}  // namespace rollcall::viz
