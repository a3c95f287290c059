#pragma once

// What the members of a communicator share: a piece of memory without a name, which its maker's process and its number
// there lead to. Everything in it is written by one member and read by the others, or guarded by its counters.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace rollcall::stand_in {

inline constexpr int most_ranks = 64;

// A collective as one member calls it. Offsets are into the member's memory.
struct Descriptor {
  int function = 0;
  int type = 0;
  int op = 0;
  int scales = 0;
  int root = 0;
  double factor = 1;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;  // that must be the same for all
  std::uint64_t from = 0;
};

// Calls of a communicator run one after the other, and nobody is more than one ahead of the slowest.
inline constexpr std::uint64_t calls_kept = 4;

struct Member {
  std::atomic<int> process = 0;  // 0: has not come
  int memory = -1;               // its descriptor there
  int device = -1;
  std::uint64_t host = 0;                  // a digest of what it calls its host
  std::atomic<std::uint64_t> arrived = 0;  // at that many collectives
  std::atomic<std::uint64_t> read = 0;     // the others' part of that many
  Descriptor calls[calls_kept];
  std::atomic<bool> finalized = false;
  std::atomic<std::uint64_t> split = 0;       // made that many calls of ncclCommSplit
  std::atomic<std::uint64_t> split_read = 0;  // the others' part of that many
  int color = 0;
  int key = 0;
  int part_process = 0;  // where the communicator is that this member has made for its color
  int part_number = -1;
  std::atomic<std::uint64_t> part = 0;  // has made that many
};

// From one member to another; one message at a time.
struct Channel {
  std::atomic<std::uint64_t> posted = 0;
  std::atomic<std::uint64_t> taken = 0;
  std::uint64_t from = 0;  // in the sender's memory
  std::uint64_t bytes = 0;
};

struct Shared {
  std::atomic<int> size = 0;  // 0: nobody has come
  std::atomic<std::uint32_t> changes = 0;
  Member members[most_ranks];
  Channel channels[most_ranks][most_ranks];  // by sender, then receiver
};

struct Address {
  int process = 0;
  int number = -1;
};

Address make_rendezvous();
// Null: whoever made it is gone.
std::shared_ptr<Shared> open_rendezvous(const Address& address);

// Tells all who wait.
void announce(Shared& shared);
// Returns when `condition` holds, or when `given_up` does: false then.
bool wait_for(Shared& shared, const std::function<bool()>& condition, const std::function<bool()>& given_up);

}  // namespace rollcall::stand_in
