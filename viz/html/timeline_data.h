#pragma once

// A timeline packed for the report's script, which unpacks it in viz/html/timeline/data.js. One text:
//
//   a line of JSON, described at Header in timeline_data.cc, ended by a newline
//   slices: by story, lane and start. LEB128 numbers, those with a sign in zigzag:
//     start - start of the lane's last slice; 0 if it never returned, else 1 + duration; index of its call;
//     signed seq - seq of the lane's last slice; of messages 0 for an unknown peer, else 1 + signed peer - rank
//   arrivals: for each group of the header and each seq of it that somebody came to, ascending: seq - seq before;
//     the rank that came last; signed time - time before
//   arrows between messages' ends: rank of the later, rank of the earlier, time - time of the arrow before
//
// A story is what one rank did; ranks that did the same at the same times share one.

#include <string>
#include <string_view>

#include "sim/report/report.h"

namespace rollcall::viz {

std::string timeline_data(const Report& report);

// The same, compressed (gzip), as base64.
std::string packed_timeline(const Report& report);

std::string base64(std::string_view bytes);

}  // namespace rollcall::viz
