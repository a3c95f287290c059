#include "sim/c10d/rank_context.h"

namespace rollcall::detail {

constinit thread_local RankContext* current_rank = nullptr;

}  // namespace rollcall::detail
