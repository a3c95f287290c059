#include "sim/engine/gloo_ring.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include <fmt/format.h>

#include "sim/dist/expects.h"

namespace rollcall::sim {
namespace {

// One step of a rank's run through the algorithm.
struct Step {
  enum class Kind { post_receive, send, finish_receive, finish_send };

  Kind kind;
  std::size_t offset = 0;  // into the rank's buffer
  std::size_t length = 0;
  bool reduces = false;  // receives of the first phase are reduced into the buffer, later ones overwrite it
};

constexpr std::size_t max_segment_bytes = 1024 * 1024;  // gloo/allreduce.h, kMaxSegmentSize

std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// How one rank cuts its buffer: equally long segments, at least two per rank; the last ones may be
// shorter or empty.
struct Segments {
  std::size_t ranks;
  std::size_t total;
  std::size_t bytes;
  std::size_t count;

  Segments(std::size_t ranks_in, std::size_t total_bytes, std::size_t element)
      : ranks(ranks_in), total(total_bytes) {
    const std::size_t limit = element * (max_segment_bytes / element);
    bytes = round_up(std::min((total + 2 * ranks - 1) / (2 * ranks), limit), element);
    bytes = std::max(bytes, element);
    count = round_up(std::max((total + bytes - 1) / bytes, 2 * ranks), ranks);
  }

  std::size_t per_rank() const { return count / ranks; }
  std::size_t offset(std::size_t segment) const { return (segment % count) * bytes; }
  std::size_t length(std::size_t segment) const {
    const std::size_t begin = offset(segment);
    return begin >= total ? 0 : std::min(bytes, total - begin);
  }
};

// A phase sends the segments from `first_send` on and receives those from `first_receive` on, always with
// two exchanges under way: the waits for exchange i come just before exchange i + 2.
void add_phase(std::vector<Step>& steps, const Segments& segments, std::size_t first_send,
               std::size_t first_receive, bool reduces) {
  for (std::size_t i = 0; i < segments.count; ++i) {
    if (i >= 2) {
      if (segments.length(first_receive + i - 2) > 0) {
        steps.push_back({Step::Kind::finish_receive, 0, 0, reduces});
      }
      if (segments.length(first_send + i - 2) > 0) {
        steps.push_back({Step::Kind::finish_send});
      }
    }
    if (i + 2 < segments.count) {
      if (const std::size_t length = segments.length(first_receive + i); length > 0) {
        steps.push_back({Step::Kind::post_receive, segments.offset(first_receive + i), length, reduces});
      }
      if (const std::size_t length = segments.length(first_send + i); length > 0) {
        steps.push_back({Step::Kind::send, segments.offset(first_send + i), length});
      }
    }
  }
}

std::vector<Step> steps_of(std::size_t rank, std::size_t ranks, std::size_t bytes, std::size_t element) {
  std::vector<Step> steps;
  const Segments segments(ranks, bytes, element);
  const std::size_t own = segments.per_rank();
  add_phase(steps, segments, (rank + 1) * own, (rank + 2) * own, true);
  add_phase(steps, segments, rank * own, (rank + 1) * own, false);
  return steps;
}

// A message on its way from a rank to its left neighbour. Bytes are read when both sides are there.
struct Send {
  std::size_t offset;
  std::size_t length;
};
struct Receive {
  std::size_t offset;
  std::size_t length;
  bool reduces;
};

struct RankRun {
  std::vector<Step> steps;
  std::size_t at = 0;
  bool crashed = false;
  std::deque<Send> sends;                                          // posted, not yet taken by the neighbour
  std::deque<Receive> receives;                                    // posted, not yet filled
  std::deque<std::pair<Receive, std::vector<std::byte>>> arrived;  // filled, not yet waited for
  std::size_t sends_done = 0;

  bool finished() const { return at == steps.size(); }
};

void reduce_into(RingMember& member, const Receive& receive, const std::vector<std::byte>& data) {
  if (!receive.reduces) {
    std::memcpy(member.buffer.data() + receive.offset, data.data(), data.size());
    return;
  }
  // The scratch space is fresh memory; what a short message leaves untouched counts as zero here.
  std::vector<std::byte> scratch(receive.length, std::byte{0});
  std::memcpy(scratch.data(), data.data(), data.size());
  const std::size_t element = size_of(member.dtype);
  for (std::size_t at = 0; at + element <= receive.length; at += element) {
    Bits mine = 0;
    Bits theirs = 0;
    std::memcpy(&mine, member.buffer.data() + receive.offset + at, element);
    std::memcpy(&theirs, scratch.data() + at, element);
    const Bits total = reduce_step(member.reduce, member.dtype, mine, theirs);
    std::memcpy(member.buffer.data() + receive.offset + at, &total, element);
  }
}

class Ring {
 public:
  explicit Ring(std::vector<RingMember>& members) : members_(members), runs_(members.size()) {
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      runs_[rank].steps =
          steps_of(rank, members.size(), members[rank].buffer.size(), size_of(members[rank].dtype));
    }
  }

  std::vector<RingOutcome> replay() {
    std::vector<RingOutcome> outcomes(members_.size());
    bool progress = true;
    while (progress) {
      progress = false;
      for (std::size_t rank = 0; rank < runs_.size(); ++rank) {
        progress = advance(rank) || progress;
        progress = deliver(rank, outcomes[rank]) || progress;
      }
    }
    for (std::size_t rank = 0; rank < runs_.size(); ++rank) {
      if (runs_[rank].crashed) {
        outcomes[rank].fate = check::Fate::crashes;
      } else if (runs_[rank].finished()) {
        outcomes[rank].fate = check::Fate::completes;
      }
    }
    return outcomes;
  }

 private:
  // Runs a rank until it has to wait.
  bool advance(std::size_t rank) {
    RankRun& run = runs_[rank];
    bool moved = false;
    while (!run.finished() && !run.crashed && take(rank, run.steps[run.at])) {
      ++run.at;
      moved = true;
    }
    return moved;
  }

  bool take(std::size_t rank, const Step& step) {
    RankRun& run = runs_[rank];
    switch (step.kind) {
      case Step::Kind::post_receive:
        run.receives.push_back({step.offset, step.length, step.reduces});
        return true;
      case Step::Kind::send:
        run.sends.push_back({step.offset, step.length});
        return true;
      case Step::Kind::finish_receive:
        if (run.arrived.empty()) {
          return false;
        }
        reduce_into(members_[rank], run.arrived.front().first, run.arrived.front().second);
        run.arrived.pop_front();
        return true;
      case Step::Kind::finish_send:
        if (run.sends_done == 0) {
          return false;
        }
        --run.sends_done;
        return true;
    }
    return false;
  }

  // Moves one message from the right neighbour to `rank`, if both sides are there.
  bool deliver(std::size_t rank, RingOutcome& outcome) {
    RankRun& run = runs_[rank];
    const std::size_t right = (rank + 1) % runs_.size();
    RankRun& sender = runs_[right];
    if (run.crashed || sender.crashed || run.receives.empty() || sender.sends.empty()) {
      return false;
    }
    const Send send = sender.sends.front();
    const Receive receive = run.receives.front();
    if (send.length > receive.length) {
      run.crashed = true;
      sender.sends.pop_front();  // written already: the sender does not notice
      ++sender.sends_done;
      outcome.failure = gloo_overflow_text(send.length, receive.length);
      return true;
    }
    const std::byte* from = members_[right].buffer.data() + send.offset;
    run.arrived.emplace_back(receive, std::vector<std::byte>(from, from + send.length));
    run.receives.pop_front();
    sender.sends.pop_front();
    ++sender.sends_done;
    return true;
  }

  std::vector<RingMember>& members_;
  std::vector<RankRun> runs_;
};

}  // namespace

std::string gloo_overflow_text(std::size_t sent, std::size_t room) {
  return fmt::format(
      "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n  what():  [enforce fail at "
      "./gloo/transport/tcp/pair.cc:510] op.preamble.length <= op.nbytes. {} vs {}",
      sent, room);
}

std::vector<RingOutcome> replay_gloo_ring(std::vector<RingMember>& members) {
  expects(members.size() >= 2, "a ring has at least two members");
  return Ring(members).replay();
}

}  // namespace rollcall::sim
