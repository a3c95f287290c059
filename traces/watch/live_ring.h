#pragma once

// The ring of a rank that runs, as its supervisor sees it: mapped into memory, so that a look costs nothing and asks
// nobody. The rank writes while we read; whatever is read is a number that it has written at some time.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "traces/formats/ring.h"

namespace rollcall::watch {

// What one look shows.
struct RingLook {
  std::uint64_t issued = 0;
  std::uint64_t finished = 0;
  std::int64_t heartbeat_ns = 0;  // of the machine's clock
  std::int64_t last_event_ns = 0;
  std::uint64_t place = 0;  // changes when the program is elsewhere
  std::uint64_t steps = 0;  // of the program's optimizer
  bool waits = false;       // for a call that is not over
  std::string waits_in;     // a call about groups that has not returned: "init_process_group"
  bool has_ended = false;   // the program is through, or has raised
};

class LiveRing {
 public:
  // Nothing where the file is not (yet) a ring, or cannot be mapped. Throws BadFile for one of another version.
  static std::optional<LiveRing> open(const std::string& path);

  LiveRing(LiveRing&& other) noexcept;
  LiveRing& operator=(LiveRing&&) = delete;
  ~LiveRing();

  Rank rank() const { return header_.rank; }
  Rank world_size() const { return header_.world_size; }
  std::int64_t pid() const { return header_.pid; }
  // Of the file: a rank that was started again has another one.
  std::uint64_t identity() const { return identity_; }

  RingLook look() const;

  void ask(std::uint64_t question);
  std::uint64_t answered() const;
  // Since when nothing moves, for those who read the file; 0: the job goes on.
  void note_standstill(std::uint64_t since_ns);

 private:
  LiveRing(char* memory, std::size_t size, std::uint64_t identity, const traces::RingHeader& header)
      : memory_(memory), size_(size), identity_(identity), header_(header) {}

  std::string_view bytes() const { return {memory_, size_}; }
  std::uint64_t word(std::size_t index) const;
  void set_word(std::size_t index, std::uint64_t value);
  std::string op_of(std::uint32_t call) const;

  char* memory_;
  std::size_t size_;
  std::uint64_t identity_;
  traces::RingHeader header_;  // what never changes
};

}  // namespace rollcall::watch
