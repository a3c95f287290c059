#pragma once

// What the ranks of a job recorded about their calls before the job was stopped: Flight Recorder dumps
// as values. Made by traces/, judged by dump_judge.h. Texts and shapes are kept once and referred to by
// number: two million records are two million small values.
//
// The fields are those of torch/csrc/distributed/c10d/FlightRecorder.hpp. What a recorder does not
// store (roots, reduce ops, tags, the time of the dump) is not here.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/c10d/op.h"
#include "sim/diagnose/log_fact.h"

namespace rollcall::check {

// Operation and arguments of a record. Two ranks' calls agree if these are equal.
struct DumpCall {
  std::string backend;  // "nccl"
  std::string op;       // "all_reduce"; "send", "recv" for messages
  Rank source = -1;     // messages: ranks inside the group
  Rank destination = -1;
  std::vector<std::vector<std::int64_t>> inputs;  // shapes
  std::vector<std::vector<std::int64_t>> outputs;
  std::vector<std::string> input_dtypes;
  std::vector<std::string> output_dtypes;

  bool is_message() const { return source >= 0; }
  // Of what all members pass: the output of a scatter, whose inputs only the root has; otherwise the inputs.
  const std::vector<std::vector<std::int64_t>>& common_shapes() const {
    return op == "scatter" ? outputs : inputs;
  }
  const std::vector<std::string>& common_dtypes() const {
    return op == "scatter" ? output_dtypes : input_dtypes;
  }
  // Of the first of these; empty if there is none.
  std::string dtype() const { return common_dtypes().empty() ? "" : common_dtypes().front(); }
  // Closes a batch of messages, or of collectives.
  bool is_marker() const { return op == "coalesced"; }
  // Gloo's recorder (ProcessGroupGloo.cpp, enqueue) keeps collectives only. It records that a call ended, but not
  // how.
  bool is_of_gloo() const { return backend == "gloo"; }

  friend bool operator==(const DumpCall&, const DumpCall&) = default;
};

struct DumpFrame {
  std::string function;
  std::string file;
  std::int64_t line = 0;

  friend bool operator==(const DumpFrame&, const DumpFrame&) = default;
};

using DumpStack = std::vector<DumpFrame>;  // innermost first; may be cut off at its outer end

struct DumpGroup {
  std::string name;
  std::string description;    // "default_pg", "mesh_tp", ...
  std::vector<Rank> members;  // global, ascending
  bool is_by_use = false;     // members are the ranks that have used it: nothing lists them
  bool is_everybody = false;  // members are all ranks that are known of: likewise

  friend bool operator==(const DumpGroup&, const DumpGroup&) = default;
};

struct DumpRecord {
  // ended: over, and nothing says whether it succeeded. A call that failed is retired as well.
  enum class State : std::uint8_t { scheduled, started, ended, completed };

  // Nanoseconds of the rank's own clock; 0: not recorded. The latter two say when a host thread noticed.
  std::int64_t created_ns = 0;
  std::int64_t started_ns = 0;
  std::int64_t completed_ns = 0;
  std::int64_t collective_seq = 0;
  std::int64_t p2p_seq = 0;
  std::uint32_t call = 0;   // index into JobDump::calls
  std::uint32_t stack = 0;  // index into JobDump::stacks; 0: the record has none
  std::uint32_t group = 0;  // index into JobDump::groups
  std::uint32_t timeout_ms = 0;
  std::uint32_t unrecorded = 0;  // operations of its group before it that the recorder skips: messages
  float duration_ms = -1;        // -1: not recorded
  State state = State::scheduled;
  bool retired = false;
  bool is_p2p = false;
  bool gap_after = false;  // the recorder's next record is not in the dump

  bool is_over() const { return state == State::ended || state == State::completed; }
  // Of a message or a batch: its own number, or the collectives' counter where the recorder gave it none.
  std::int64_t message_seq() const { return p2p_seq != 0 ? p2p_seq : collective_seq; }

  friend bool operator==(const DumpRecord&, const DumpRecord&) = default;
};

// Progress counters of a group that a record names. Collectives and messages share them.
struct DumpStatus {
  std::uint32_t group = 0;
  std::int64_t enqueued = -1;
  std::int64_t started = -1;
  std::int64_t completed = -1;
};

struct RankDump {
  Rank rank = 0;
  std::string file;
  std::string version;
  bool without_gaps = false;        // holds every record from its first one on
  bool from_start = false;          // and the first one is the recorder's first: nothing fell off the ring
  bool has_states = true;           // else replay_states says which calls are finished
  bool is_window = false;           // it ends where recording was stopped, which says nothing about the rank
  bool skips_messages = false;      // as Gloo's recorder does: it keeps collectives only
  bool knows_groups = true;         // else all calls are assumed to be of one group
  std::vector<DumpRecord> records;  // oldest first
  std::vector<DumpStatus> status;   // by group
  std::vector<std::uint32_t> groups;  // that this rank has used, ascending
};

struct JobDump {
  std::vector<RankDump> ranks;  // ascending, each rank once; may be empty if there are facts
  std::vector<DumpCall> calls;
  std::vector<DumpStack> stacks;  // the first is empty
  std::vector<DumpGroup> groups;
  std::vector<RankDump> earlier;  // of some ranks, from an earlier moment; ascending by rank
  std::vector<LogFact> facts;     // from the job's log, by file and line
  bool is_known_to_hang = false;  // the job was seen to make no progress when the dumps were written
};

}  // namespace rollcall::check
