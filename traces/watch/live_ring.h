#pragma once

// The ring of a running rank, as its supervisor sees it: mapped into memory, so that a look costs nothing and does not
// involve the rank. The rank writes while we read; every number that is read was written at some time.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "traces/formats/ring.h"

namespace rollcall::watch {

// The state that one look shows.
struct RingLook {
  std::uint64_t issued = 0;
  std::uint64_t finished = 0;
  std::int64_t heartbeat_ns = 0;  // on the machine's clock
  std::uint64_t place = 0;        // changes when the program moves
  std::uint64_t steps = 0;        // of the program's optimizer
  bool waits = false;             // for a call that has not completed
  std::string waits_in;           // a call about groups that has not returned: "init_process_group"
  bool has_ended = false;         // the program is done, or has raised
};

class LiveRing {
 public:
  // Empty if the file is not (yet) a ring or cannot be mapped. Throws BadFile for a ring of another version.
  static std::optional<LiveRing> open(const std::string& path);

  LiveRing(LiveRing&& other) noexcept;
  LiveRing& operator=(LiveRing&&) = delete;
  ~LiveRing();

  Rank rank() const { return header_.rank; }
  Rank world_size() const { return header_.world_size; }
  std::int64_t pid() const { return header_.pid; }
  // Identifies the file: a rank that was restarted has another one.
  std::uint64_t identity() const { return identity_; }

  RingLook look() const;

  void ask(std::uint64_t question);
  std::uint64_t answered() const;
  // Writes since when nothing moves, for readers of the file; 0: the job continues.
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
  traces::RingHeader header_;  // the fields that never change
};

}  // namespace rollcall::watch
