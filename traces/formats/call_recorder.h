#pragma once

// Builds one rank's recording call by call, for formats that know less than the Flight Recorder: no states, no
// stacks, no counters.

#include <string_view>

#include "traces/dumps/rank_recording.h"
#include "traces/values/value.h"

namespace rollcall::traces {

// A call as it is in its file.
struct RecordedCall {
  std::string_view name;       // "allreduce", "_allgather_base", "send", ...
  std::uint32_t group = 0;     // from CallRecorder
  std::int64_t seq = -1;       // per group; -1: not recorded, so calls are counted
  std::int64_t numel_in = -1;  // -1: unknown
  std::int64_t numel_out = -1;
  std::string_view dtype;
  Rank peer = -1;  // messages: inside the group
  std::int64_t created_ns = 0;
  double duration_ms = -1;
};

class CallRecorder {
 public:
  CallRecorder();

  // Returns a group, with its members as far as they are known: those of one call and those of a table are one group.
  std::uint32_t group(std::string_view name, std::string_view description, std::vector<Rank> members);

  // A list of dicts, as torch.profiler and the observer of execution traces describe the groups of a rank.
  void add_groups(const Value* table);

  // For calls that do not name a group: the only group, or else a group that stands for all.
  std::uint32_t only_group();

  // Adds a call. Leaves out calls that move no data between ranks (wait, init) and messages whose other end is not
  // recorded.
  void add(const RecordedCall& call, Rank own_rank);

  // Returns everything recorded so far. `is_window`: see RankDump.
  RankRecording finish(bool is_window);

 private:
  void add_message(const RecordedCall& call, check::DumpCall& recorded, Rank own_rank) const;

  RankRecording result_;
  std::vector<std::int64_t> counts_;  // of collectives, by group
};

}  // namespace rollcall::traces
