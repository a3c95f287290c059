#pragma once

// Tries what NCCL's API promises on a communicator of one rank: argument and pointer checks, rules of groups, order
// on a stream, capture in a graph, lifetime and end of communicators. With one rank, NCCL launches no kernel
// (src/enqueue.cc, taskAppend), so all of this can be tried on one GPU.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "sim/base/time.h"

namespace rollcall::real {

class OneRank;  // a communicator of one rank, and the libraries

struct Trial {
  std::string_view name;       // "a root that no rank has"
  std::string_view predicted;  // NCCL's name of the result; "a|b": either
  std::string_view source;     // in NCCL's sources or documentation
  std::string (*body)(OneRank& rank);
};

// In the order in which they are tried. Empty if rollcall was built without NCCL's headers.
std::span<const Trial> one_rank_trials();

// The outcome of the trial with this number: NCCL's name of the result; "wrong data"; "hang", after `limit`; the signal
// or exit status that ended the process; or "unavailable: ..." if this NCCL lacks the function. It runs in its own
// process.
std::string try_one_rank(std::size_t trial, Duration limit);

// True if `observed` is among the predicted outcomes.
bool is_predicted(std::string_view predicted, std::string_view observed);

}  // namespace rollcall::real
