#pragma once

// The shared memory of a communicator's members: unnamed memory, which is found by its creator's process and its number
// there. Everything in it is written by one member and read by the others, or guarded by its counters.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace rollcall::stand_in {

inline constexpr int most_ranks = 64;

// A collective as one member calls it. Offsets refer to the member's memory.
struct Descriptor {
  int function = 0;
  int type = 0;
  int op = 0;
  int scales = 0;
  int root = 0;
  double factor = 1;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;  // must be the same for all members
  std::uint64_t from = 0;
};

// Calls of a communicator run one after the other, and no member is more than one call ahead of the slowest.
inline constexpr std::uint64_t calls_kept = 4;

struct Member {
  std::atomic<int> process = 0;  // 0: not there yet
  int memory = -1;               // its descriptor in that process
  int device = -1;
  std::uint64_t host = 0;                  // a digest of its host's name
  std::atomic<std::uint64_t> arrived = 0;  // at this many collectives
  std::atomic<std::uint64_t> read = 0;     // the others' part of that many
  Descriptor calls[calls_kept];
  std::atomic<bool> finalized = false;
  std::atomic<std::uint64_t> split = 0;       // has made this many calls of ncclCommSplit
  std::atomic<std::uint64_t> split_read = 0;  // the others' part of that many
  int color = 0;
  int key = 0;
  int part_process = 0;  // the place of the communicator that this member created for its color
  int part_number = -1;
  std::atomic<std::uint64_t> part = 0;  // has created this many
};

// A channel from one member to another, for one message at a time.
struct Channel {
  std::atomic<std::uint64_t> posted = 0;
  std::atomic<std::uint64_t> taken = 0;
  std::uint64_t from = 0;  // in the sender's memory
  std::uint64_t bytes = 0;
};

struct Shared {
  std::atomic<int> size = 0;  // 0: no member is there yet
  std::atomic<std::uint32_t> changes = 0;
  Member members[most_ranks];
  Channel channels[most_ranks][most_ranks];  // by sender, then receiver
};

struct Address {
  int process = 0;
  int number = -1;
};

Address make_rendezvous();
// Returns null if its creator is gone.
std::shared_ptr<Shared> open_rendezvous(const Address& address);

// Wakes all waiters.
void announce(Shared& shared);
// Returns true when `condition` holds, and false when `given_up` does.
bool wait_for(Shared& shared, const std::function<bool()>& condition, const std::function<bool()>& given_up);

}  // namespace rollcall::stand_in
