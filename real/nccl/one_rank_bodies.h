#pragma once

// The bodies of the trials on one rank: the calls, in order.

#include <span>
#include <string>

#include "real/nccl/one_rank.h"

namespace rollcall::real {

class OneRank;  // a communicator of one rank, and the libraries

struct OneRankTrial {
  Trial what;
  std::string (*body)(OneRank& rank);
};

std::span<const OneRankTrial> one_rank_bodies();

// Makes the communicator and runs the body. Call it in a separate process: a trial may end or poison the process.
std::string outcome_of(const OneRankTrial& trial);

}  // namespace rollcall::real
