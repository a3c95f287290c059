#pragma once

// Open ends: the programs of recorded ranks end where their job was last seen. What these ranks would have called next
// may be just what the others wait for.

#include "sim/report/report.h"

namespace rollcall::check {

// The ranks of `open` that have made all their known calls.
RankSet ranks_at_open_ends(const Report& report, const RankSet& open);

// True if ranks of `open` have made all their known calls, and nobody waits for anything but them: directly, or for
// ranks that do.
bool may_go_on(const Report& report, const RankSet& open);

}  // namespace rollcall::check
