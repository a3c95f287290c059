#pragma once

// A stretch of a timeline, in words.

#include <string>

#include "sim/report/timeline.h"

namespace rollcall::viz {

// "all_reduce #5 on dp (float32 x 4, SUM)", "send to rank 5 (float32 x 4, tag 7)", "compute". The world goes without
// saying, and so does the number of a message, which its two ends count apart.
std::string call_text(const Span& span, const Timeline& timeline);
// The same for ranks that are on different groups, called `group` together.
std::string call_text(const Span& span, const Timeline& timeline, const std::string& group);

// " from gradients at train.json:12:7", as far as it is known.
std::string origin_text(const Span& span, const Timeline& timeline);

// The element type, or nothing for what carries no data.
std::string dtype_text(const Span& span, const Timeline& timeline);

}  // namespace rollcall::viz
