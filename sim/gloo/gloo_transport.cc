#include "sim/gloo/gloo_transport.h"

#include <cstring>
#include <deque>
#include <map>

#include <fmt/core.h>

#include "sim/base/expects.h"
#include "sim/torch/torch_traits.h"

namespace rollcall::sim::gloo {
namespace {

using check::Fate;

// A receive whose message has arrived.
struct Arrival {
  Step receive;
  std::vector<std::byte> data;  // only of receives that reduce; others are written at once
};

// One direction between two members.
struct Channel {
  std::deque<Step> sends;     // posted, not yet taken
  std::deque<Step> receives;  // posted, not yet filled
};

struct Run {
  std::size_t at = 0;  // the step it is in
  bool crashed = false;
  std::deque<Arrival> arrivals;  // not yet awaited
  std::size_t sends_done = 0;    // not yet awaited
};

void reduce_into(Member& member, const Arrival& arrival) {
  const Step& receive = arrival.receive;
  // Gloo receives into fresh memory; the bytes that a short message leaves untouched count as zero here.
  std::vector<std::byte> scratch(receive.length, std::byte{0});
  std::memcpy(scratch.data(), arrival.data.data(), arrival.data.size());
  const std::size_t element = size_of(member.dtype);
  for (std::size_t at = 0; at + element <= receive.length; at += element) {
    Bits mine = 0;
    Bits theirs = 0;
    std::memcpy(&mine, member.memory.data() + receive.offset + at, element);
    std::memcpy(&theirs, scratch.data() + at, element);
    const Bits total = reduce_step(member.reduce, member.dtype, mine, theirs);
    std::memcpy(member.memory.data() + receive.offset + at, &total, element);
  }
}

class Exchange {
 public:
  Exchange(std::vector<Member>& members, const TorchTraits& torch)
      : members_(members), torch_(torch), runs_(members.size()), outcomes_(members.size()) {}

  std::vector<Outcome> run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t rank = 0; rank < members_.size(); ++rank) {
        progress = advance(rank) || progress;
      }
      for (auto& [ends, channel] : channels_) {
        progress = deliver(ends.first, ends.second, channel) || progress;
      }
    }
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      if (!runs_[rank].crashed && finished(rank)) {
        outcomes_[rank].fate = Fate::completes;
      } else if (!finished(rank)) {
        outcomes_[rank].stuck.in_send = members_[rank].steps[runs_[rank].at].kind == Step::Kind::await_send;
      }
    }
    for (const auto& [ends, channel] : channels_) {
      if (!channel.sends.empty()) {
        outcomes_[ends.first].stuck.peers.push_back(static_cast<Rank>(ends.second));
      }
      if (!channel.receives.empty()) {
        outcomes_[ends.second].stuck.peers.push_back(static_cast<Rank>(ends.first));
      }
    }
    return std::move(outcomes_);
  }

 private:
  bool finished(std::size_t rank) const { return runs_[rank].at == members_[rank].steps.size(); }

  // Runs a member until it has to wait.
  bool advance(std::size_t rank) {
    bool moved = false;
    while (!finished(rank) && !runs_[rank].crashed && take(rank, members_[rank].steps[runs_[rank].at])) {
      ++runs_[rank].at;
      moved = true;
    }
    return moved;
  }

  void expect_in_memory(std::size_t rank, const Step& step) const {
    const std::size_t bytes = members_[rank].memory.size();
    expects(step.length <= bytes && step.offset <= bytes - step.length,
            "a step reads and writes its member's memory");
  }

  bool take(std::size_t rank, const Step& step) {
    Run& run = runs_[rank];
    switch (step.kind) {
      case Step::Kind::receive:
        expect_in_memory(rank, step);
        channels_[{step.peer, rank}].receives.push_back(step);
        return true;
      case Step::Kind::send:
        expect_in_memory(rank, step);
        channels_[{rank, step.peer}].sends.push_back(step);
        return true;
      case Step::Kind::await_receive:
        if (run.arrivals.empty()) {
          return false;
        }
        if (run.arrivals.front().receive.reduces) {
          reduce_into(members_[rank], run.arrivals.front());
        }
        run.arrivals.pop_front();
        return true;
      case Step::Kind::await_send:
        if (run.sends_done == 0) {
          return false;
        }
        --run.sends_done;
        return true;
    }
    return false;
  }

  // Moves one message, if both sides are there. Its bytes are read now, not when the send was posted. In reality, the
  // messages that a dying process has posted race with its death; here they still go out, and it still takes the
  // others' messages.
  bool deliver(std::size_t from, std::size_t to, Channel& channel) {
    if (channel.sends.empty() || channel.receives.empty() ||
        members_[from].function != members_[to].function) {
      return false;
    }
    const Step send = channel.sends.front();
    const Step receive = channel.receives.front();
    if (!runs_[to].crashed && send.length > receive.length) {
      runs_[to].crashed = true;
      outcomes_[to] = {.fate = Fate::crashes, .failure = overflow_text(send.length, receive.length, torch_)};
    }
    if (runs_[to].crashed && !leaves_unread(send.length)) {
      channel.receives.clear();  // the sender stays in the middle of its message
      return true;
    }
    channel.sends.pop_front();
    channel.receives.pop_front();
    ++runs_[from].sends_done;  // even if it kills its receiver: it has been written
    if (runs_[to].crashed) {
      return true;
    }
    const std::byte* bytes = members_[from].memory.data() + send.offset;
    Arrival arrival{receive, {}};
    if (receive.reduces) {
      arrival.data.assign(bytes, bytes + send.length);
    } else if (send.length > 0) {
      std::memcpy(members_[to].memory.data() + receive.offset, bytes, send.length);
    }
    runs_[to].arrivals.push_back(std::move(arrival));
    return true;
  }

  std::vector<Member>& members_;
  const TorchTraits& torch_;
  std::vector<Run> runs_;
  std::vector<Outcome> outcomes_;
  std::map<std::pair<std::size_t, std::size_t>, Channel> channels_;  // by (sender, receiver)
};

}  // namespace

std::string overflow_text(std::size_t sent, std::size_t room, const TorchTraits& torch) {
  return fmt::format(
      "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n  what():  [enforce fail at "
      "./gloo/transport/tcp/pair.cc:{}] op.preamble.length <= op.nbytes. {} vs {}{}",
      torch.gloo_lines.oversized, sent, room, torch.gloo_oversized_hint);
}

bool leaves_unread(std::size_t bytes) {
  constexpr std::size_t most = 3840 * 1024;
  return bytes <= most;
}

std::vector<Outcome> exchange(std::vector<Member>& members, const TorchTraits& torch) {
  return Exchange(members, torch).run();
}

}  // namespace rollcall::sim::gloo
