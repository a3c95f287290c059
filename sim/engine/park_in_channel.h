#pragma once

// While it lives, a rank's status says that it waits in a call about groups or on the store.

#include "sim/match/evidence.h"

namespace rollcall::sim {

class ParkInChannel {
 public:
  ParkInChannel(check::RankStatus& status, GroupId group, check::Channel channel, Rank group_rank,
                std::int64_t seq)
      : status_(status) {
    status.state = check::RankStatus::State::waiting;
    status.group = group;
    status.channel = channel;
    status.group_rank = group_rank;
    status.seq = seq;
    status.message = check::no_message;
  }
  ~ParkInChannel() { status_.channel = check::Channel::collectives; }
  ParkInChannel(const ParkInChannel&) = delete;
  ParkInChannel& operator=(const ParkInChannel&) = delete;

 private:
  check::RankStatus& status_;
};

}  // namespace rollcall::sim
