#pragma once

// Unanswered messages: ranks wait in them, and they have no other end.

#include <vector>

#include "sim/diagnose/dump_case.h"

namespace rollcall::check {

// An unanswered message, as its two ranks.
struct Unanswered {
  Rank waiting = -1;
  Rank peer = -1;
  bool peer_is_further = false;  // it has posted a batch of that number or a later one
};

std::vector<Unanswered> find_unanswered(const DumpCase& job, const std::vector<const WaitNode*>& nodes);

bool someone_is_further(const std::vector<Unanswered>& messages);

// The rank at which most of them begin or end: one wrong peer leaves two messages unanswered. Empty on a tie.
RankSet common_end(const std::vector<Unanswered>& messages);

}  // namespace rollcall::check
