#pragma once

// Both ends of messages side by side: what one rank sent to another, and what that rank received. The two ends of a
// message have the same number here, though each rank counts its own calls separately.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/report/report.h"
#include "viz/rows/call_sequences.h"

namespace rollcall::viz {

struct MessagePairs {
  struct Row {
    std::int64_t number = 0;        // of the message between the two ranks, from 0
    std::int64_t sent_as = -1;      // its number among the sender's own calls; -1: no call
    std::int64_t received_as = -1;  // the same for the receiver
    CallSequences::Cell sent;
    CallSequences::Cell received;  // `differs` is set for the missing end
  };

  Rank sender = -1;
  Rank receiver = -1;
  std::vector<Row> rows;  // around the first message that never completed
  std::size_t later = 0;
};

// Returns the pairs of ranks with a message that never completed and whose ends are both known. Those with culprits
// come first. Needs a timeline.
std::vector<MessagePairs> message_pairs(const Report& report);

}  // namespace rollcall::viz
