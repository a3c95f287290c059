#include "sim/c10d/work.h"

#include "sim/c10d/rank_context.h"

namespace rollcall {

void Work::wait() const {
  if (!is_nothing()) {
    this_rank().backend->wait(*this);
  }
}

void Work::wait(Duration timeout) const {
  if (!is_nothing()) {
    this_rank().backend->wait_for(*this, timeout);
  }
}

bool Work::is_completed() const { return is_nothing() || this_rank().backend->is_completed(*this); }

}  // namespace rollcall
