#pragma once

// The ring of an observed rank (traces/recorder/rollcall_recorder/ring.py): its last calls, as they were in memory
// when the file was copied or its process ended.
//
// Kept: calls with sizes, dtypes, groups, stacks, when they were made and whether they had ended; messages with their
// other end. Left out: calls about groups and receives from any source. A supervisor that has seen no progress for a
// long time says so in the header: calls that are unfinished then will not finish.

#include <cstdint>
#include <string_view>

#include "traces/dumps/rank_recording.h"

namespace rollcall::traces {

// As ring.py writes it, in words of 8 bytes.
struct RingHeader {
  std::uint32_t version = 0;
  Rank rank = -1;
  Rank world_size = 0;
  std::int64_t pid = 0;
  std::uint64_t capacity = 0;  // records; a power of two
  std::uint64_t table_begin = 0;
  std::uint64_t table_used = 0;
  std::uint64_t issued = 0;
};

struct RingRecord {
  std::uint64_t number = 0;  // from 1; 0: there is no record
  std::uint64_t created_ns = 0;
  std::uint64_t finished_ns = 0;
  std::uint32_t call = 0;  // in the table; 0: the table was full
  std::uint32_t group = 0;
  std::uint64_t seq = 0;  // within its group, or within its messages in one direction
  std::uint64_t flags = 0;

  bool is_about_groups() const { return (flags & 2) != 0; }
  bool has_failed() const { return (flags & 4) != 0; }
};

// Fields of the header that the rank and its supervisor write to while the job runs, as word indexes.
namespace ring_words {
constexpr std::size_t table_used = 6;
constexpr std::size_t issued = 7;
constexpr std::size_t heartbeat = 8;  // when the observer's thread last ran
constexpr std::size_t end = 9;        // 1: the program ended; 2: it raised
constexpr std::size_t finished = 10;  // roughly how many calls; only the fact that it changes matters
constexpr std::size_t asked = 11;     // the supervisor asks where the rank is
constexpr std::size_t answered = 12;
constexpr std::size_t stands_still = 13;  // written by the supervisor: since when; 0: it does not
constexpr std::size_t place = 14;         // changes when the program's own thread has moved to other lines
constexpr std::size_t steps = 15;         // of the optimizer that has stepped most often
}  // namespace ring_words

constexpr std::size_t ring_page = 4096;
constexpr std::size_t ring_record_bytes = 64;

bool looks_like_ring(std::string_view bytes);
// Throws BadFile if the rest of the file cannot match its header.
RingHeader ring_header(std::string_view bytes);
RingRecord ring_record(std::string_view bytes, const RingHeader& header, std::uint64_t number);
// Throws BadFile.
RankRecording decode_ring(std::string_view bytes);

}  // namespace rollcall::traces
