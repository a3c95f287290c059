#pragma once

// Describes a span of a timeline in words.

#include <string>

#include "sim/report/timeline.h"

namespace rollcall::viz {

// "all_reduce #5 on dp (float32 x 4, SUM)", "send to rank 5 (float32 x 4, tag 7)", "compute". Leaves out the world, and
// the number of a message, which its two ends count separately.
std::string call_text(const Span& span, const Timeline& timeline);
// The same for ranks on different groups, which are called `group` together.
std::string call_text(const Span& span, const Timeline& timeline, const std::string& group);

// " from gradients at train.json:12:7", as far as known.
std::string origin_text(const Span& span, const Timeline& timeline);

// The element type; empty for calls that carry no data.
std::string dtype_text(const Span& span, const Timeline& timeline);

}  // namespace rollcall::viz
