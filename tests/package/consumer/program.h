#pragma once

#include <rollcall/sim/dist.h>

// A rank program: called once per rank.
inline void uneven(rollcall::Rank rank) {
  for (int i = 0; i < (rank == 0 ? 5 : 6); ++i) {
    rollcall::Scope scope("gradients");
    rollcall::all_reduce(rollcall::Tensor::ones({1000}));
  }
}
