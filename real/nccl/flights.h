#pragma once

// Flights: a rank's calls between their launch and their end on its GPU, and what each of them has to wait for there.
// The order on streams determines which call a waiting host is really waiting for.

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "real/nccl/gpu.h"
#include "sim/base/time.h"
#include "sim/c10d/work.h"

namespace rollcall::real {

class NcclGroup;

// A call that has been launched.
struct Flight {
  Work work;
  NcclGroup* group = nullptr;
  std::string text;  // "all_reduce(numel=4, float32, SUM)"
  bool is_barrier = false;
  Stream stream;              // on which it was issued
  std::int64_t position = 0;  // on that stream
  cudaEvent_t begun = nullptr;
  cudaEvent_t ended = nullptr;
  std::vector<MemoryPool::Block> staging{};  // in the host's memory, until it is over
  std::vector<MemoryPool::Block> scratch{};  // in the GPU's
  std::chrono::steady_clock::time_point launched{};
  std::chrono::nanoseconds limit{};  // after which the watchdog ends the process
};

// A call that is over, and when it ran.
struct Landing {
  Work work;
  Duration from = 0;  // since `epoch`
  Duration to = 0;
};

class Flights {
 public:
  explicit Flights(Gpu& gpu) : gpu_(gpu) {}

  // Numbers count up from 0, in the order of launches.
  std::int64_t next_number() const { return next_; }
  void add(Flight flight);
  // Removes the calls that are over. Their times count from `epoch`, an event that has passed; null: there is none yet.
  std::vector<Landing> poll(cudaEvent_t epoch);

  bool is_over(std::int64_t number) const { return number < next_ && !open_.contains(number); }
  std::optional<std::int64_t> number_of(const Work& work) const;
  // The call with this number, which is not over.
  const Flight& at(std::int64_t number) const { return open_.at(number); }
  std::optional<Work> first_of(GroupId group) const;  // the first call that is not over
  bool empty() const { return open_.empty(); }
  std::int64_t oldest() const { return open_.begin()->first; }

  // The position behind everything that is queued on a stream.
  std::int64_t position(Stream stream) const { return positions_[stream.id]; }
  std::int64_t advance(Stream stream) { return ++positions_[stream.id]; }
  // Later work on the stream waits for the call, or for a place in another stream.
  void note_wait(Stream stream, std::int64_t number);
  void note_wait(Stream stream, Stream awaited, std::int64_t position);

  // The call that the end of `number` ultimately waits for: itself, one before it on its communicator, or one that its
  // stream waits for. `depth`: of streams that wait for each other.
  Work blocking(std::int64_t number, int depth = 0) const;
  // The same for a place in a stream; null if it does not wait for a call.
  std::optional<Work> blocking(Stream stream, std::int64_t position, int depth = 0) const;

  // A call that has exceeded its limit; null if there is none. From any thread.
  std::optional<Flight> overdue() const;

 private:
  struct Wait {
    std::int64_t position = 0;
    std::int64_t number = -1;  // of a call; -1: for a place
    Stream awaited{};
    std::int64_t place = 0;
  };
  bool is_over(const Wait& wait) const;

  Gpu& gpu_;
  mutable std::mutex mutex_;             // guards open_ against the watchdog, which only reads it
  std::map<std::int64_t, Flight> open_;  // by number
  std::map<std::tuple<GroupId, std::int64_t, bool>, std::int64_t> numbers_;  // of those
  std::int64_t next_ = 0;
  std::array<std::int64_t, streams_per_rank> positions_{};
  std::map<std::uint8_t, std::vector<Wait>> waits_;  // by stream, in order
};

}  // namespace rollcall::real
