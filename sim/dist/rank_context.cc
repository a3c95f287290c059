#include "sim/dist/rank_context.h"

#include "sim/dist/expects.h"

namespace rollcall {

namespace detail {
constinit thread_local RankContext* current_rank = nullptr;
}

RankContext& this_rank() {
  expects(detail::current_rank != nullptr, "torch.distributed's functions are called by a running rank");
  return *detail::current_rank;
}

}  // namespace rollcall
