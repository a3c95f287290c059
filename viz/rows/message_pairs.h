#pragma once

// Both ends of messages side by side: what one rank sent to another, and what that one received. The two ends of a
// message have one number here, though each rank counts its calls by itself.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/report/report.h"
#include "viz/rows/call_sequences.h"

namespace rollcall::viz {

struct MessagePairs {
  struct Row {
    std::int64_t number = 0;        // of the message between the two ranks, from 0
    std::int64_t sent_as = -1;      // how the sender counts it among its own calls; -1: it did not call
    std::int64_t received_as = -1;  // the receiver
    CallSequences::Cell sent;
    CallSequences::Cell received;  // `differs` is said of the end that is missing
  };

  Rank sender = -1;
  Rank receiver = -1;
  std::vector<Row> rows;  // around the first that never completed
  std::size_t earlier = 0;
  std::size_t later = 0;
};

// Of every two ranks with a message that never completed, and a name for both ends. Those with culprits come first.
// Needs a timeline.
std::vector<MessagePairs> message_pairs(const Report& report);

}  // namespace rollcall::viz
