#pragma once

// What NCCL's API promises, tried on a communicator of one rank: argument and pointer checks, rules of groups, order
// on a stream, capture in a graph, life and end of communicators. One rank launches no kernel of NCCL's
// (src/enqueue.cc, taskAppend), so all of it can be tried on one GPU.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/time.h"

namespace rollcall::real {

struct Trial {
  std::string_view name;       // "a root that no rank has"
  std::string_view predicted;  // NCCL's name of the result; "a|b": either
  std::string_view source;     // in NCCL's sources or documents
};

// In the order in which they are tried. Empty in a rollcall that was built without NCCL's headers.
std::span<const Trial> one_rank_trials();

// The outcome of each: NCCL's name of the result; "wrong data"; "hang", after `limit`; the signal or exit status that
// ended the process; or "unavailable: ..." where this NCCL lacks the function. Each runs in a process of its own.
std::vector<std::string> try_one_rank(Duration limit);

// Whether `observed` is among what is predicted.
bool is_predicted(std::string_view predicted, std::string_view observed);

}  // namespace rollcall::real
