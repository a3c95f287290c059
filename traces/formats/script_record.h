#pragma once

// The calls that the ranks of a PyTorch script made to torch.distributed, as traces/recorder wrote them down: a file of
// JSON lines per rank (record_file.py says what each line means).
//
// A rank that was killed leaves a file that may end anywhere; the lines before that count. Lines of kinds that this
// version does not know are skipped.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/c10d/op.h"
#include "sim/report/rank_set.h"
#include "traces/formats/recordings.h"
#include "traces/values/value.h"

namespace rollcall::traces {

// A line of the user's code, and the part of torch that made the call from there.
struct ScriptSite {
  std::string file;
  std::int64_t line = 0;  // 0: unknown
  std::string function;
  std::string module;   // the class of the nn.Module in whose method the line is; may be empty
  std::string reason;   // "ddp.bucket", "join.count"; empty if the user's line made the call itself
  bool shadow = false;  // by a rank that has joined, on behalf of the others

  friend bool operator==(const ScriptSite&, const ScriptSite&) = default;
};

struct ScriptCall {
  std::string op;                    // torch.distributed's function
  std::int64_t group = 0;            // which of the rank's groups, in order of creation; 0: the world
  std::vector<std::int64_t> given;   // elements of each tensor
  std::vector<std::int64_t> filled;  // likewise, if they differ from those given
  // Of each of these tensors; empty if all have one dimension, or if no backend compares this call's shapes.
  std::vector<std::vector<std::int64_t>> given_shapes;
  std::vector<std::vector<std::int64_t>> filled_shapes;
  std::string dtype;
  std::string device;  // of its tensors, such as "cuda:1"; empty: the backend's default for this rank
  std::string reduce_op;
  double factor = 1;         // of PREMUL_SUM
  std::optional<Rank> root;  // global
  std::optional<Rank> peer;  // global; empty if it receives from any source
  std::int32_t tag = 0;
  std::vector<std::int64_t> output_splits;
  std::vector<std::int64_t> input_splits;
  std::vector<Rank> ranks;                       // of a new_group, or of the rank's own part of a split_group
  std::int64_t parent = 0;                       // of a split_group: the group that is split
  std::vector<std::vector<std::int64_t>> parts;  // of a split_group: ranks inside the parent
  bool is_local = false;    // a new_group known only to its members (use_local_synchronization)
  bool is_on_gloo = false;  // a new_group on Gloo in a job on NCCL
  bool wait_all_ranks = false;
  bool is_aside = false;  // made by a thread other than the main one
  double timeout_s = 0;   // 0: the default
  ScriptSite site;

  friend bool operator==(const ScriptCall&, const ScriptCall&) = default;
};

struct ScriptEvent {
  enum class Kind : std::uint8_t {
    call,
    batch,
    wait,
    future,
    drop,  // the script let go of a message's handle on Gloo, without waiting
    returned,
    touch,
    kernel,
    // Stream operations of the rank's GPU: switch to `stream`, record an event on it, or make it wait for an event or
    // for another stream.
    stream,
    record_event,
    wait_event,
    wait_stream
  };

  Kind kind = Kind::call;
  std::int64_t handle = -1;          // -1: a call that blocks
  std::vector<std::uint32_t> calls;  // of ScriptRank::calls; several in a batch
  std::uint32_t touch = 0;           // of ScriptRank::touches
  std::uint32_t kernel = 0;          // of ScriptRank::kernels
  std::int64_t stream = 0;           // 0: the default one
  std::int64_t awaited = 0;          // the event or the stream
  bool has_raised = false;           // the call raised, or the wait for it
  bool was_refused = false;      // a call, or its wait, that raised before other ranks could notice the call
  std::string type{};            // raised: Python's, where known
  std::string message{};         // raised, likewise
  bool was_last_resort = false;  // raised when nothing could move any more: the backend gave up
};

// The script uses a tensor before it waits for the call that works on it.
struct ScriptTouch {
  bool writes = false;
  bool is_of_filled = false;  // the call fills the tensor; otherwise it only reads it
  ScriptSite site;
};

// The operations of one kind that a rank's GPU computes between two of its calls.
struct ScriptKernel {
  enum class Phase : std::uint8_t { forward, backward, optimizer };

  std::string kind;   // "matmul", "elementwise", ...
  std::string dtype;  // of the factors of a multiplication; empty if there is none
  double flops = 0;
  double bytes = 0;  // read from and written to memory
  Phase phase = Phase::forward;
  std::int64_t count = 1;    // that many kernels
  std::int64_t time_ns = 0;  // measured, over all of them; 0: not measured
};
const char* to_string(ScriptKernel::Phase phase);

// The GPU memory that a rank's tensors take at its peak.
struct ScriptMemory {
  struct Holder {
    std::int64_t bytes = 0;
    std::int64_t count = 0;  // of tensors
    std::string part;
    ScriptSite site;  // where they were made
  };

  std::int64_t peak = 0;                                    // 0: not recorded
  std::vector<std::pair<std::string, std::int64_t>> parts;  // "parameters", ...: bytes; the largest first
  std::vector<Holder> holders;                              // likewise
};

// True if the event is only about what the rank's GPU computes, and where.
bool is_of_gpu(const ScriptEvent& event);

struct ScriptFrame {
  std::string file;
  std::int64_t line = 0;
  std::string function;
};

// How a rank's part ended. Stopped: by us, because it neither made a call nor ended. Terminated: by its launcher,
// because of other ranks.
struct ScriptEnd {
  enum class How : std::uint8_t { unknown, finished, raised, exited, killed, stopped, terminated };

  How how = How::unknown;  // the record just stops
  std::string type;        // raised: Python's
  std::string message;     // raised
  std::int64_t code = 0;   // exited: os._exit's. killed: the signal; 0: unknown
  ScriptSite site;         // raised, stopped
};

// An exception that the script handled, in an except clause, a finally block or an __exit__, while it made calls.
struct ScriptHandled {
  std::string type;
  std::string message;
  ScriptSite site;  // where it was raised
};

// A model in DistributedDataParallel, as it was at the end: nothing has changed it since its last step.
struct ScriptReplica {
  std::vector<Rank> ranks;  // that have one
  std::int64_t parameters = 0;
  std::string digest;  // of their values
  ScriptSite site;     // where it was wrapped
};

// What the rank's optimizers did up to its end.
struct ScriptTraining {
  std::int64_t parameters = 0;  // the number that were stepped; 0: none, or the record does not say
  std::int64_t steps = 0;
  std::string digest;  // of their values at the end
  ScriptSite site;     // of the first step
  std::string began;   // a digest before the first step; empty: the record does not say
  std::vector<ScriptReplica> replicas{};
};

struct ScriptRank {
  Rank rank = -1;
  Rank world_size = 0;
  Rank ranks_per_host = 0;  // 0: all are on one
  std::string mode;         // "fake", "simulator", "live"
  std::string torch;        // its version
  bool detail = false;      // TORCH_DISTRIBUTED_DEBUG=DETAIL
  std::string script;       // as it was called
  std::string folder;       // the folder that its places are relative to
  std::string backend;      // the one that the script asked for; empty if it has not initialized anything
  bool is_eager = false;    // on nccl: it gave a device_id, so communicators are made with their group
  double timeout_s = 0;
  ScriptSite init_site;           // where it first did so
  std::vector<ScriptCall> calls;  // each once
  std::vector<ScriptEvent> events;
  std::vector<ScriptHandled> handled;
  std::map<std::uint32_t, std::size_t> handling;  // of `calls`, those last made while one of `handled` was
  std::vector<ScriptTouch> touches;
  std::vector<ScriptKernel> kernels;  // each once
  ScriptMemory memory;
  std::vector<ScriptSite> data_dependent;  // lines that read what was received
  bool calls_in_threads = false;           // several threads, which may make calls at the same time
  bool begins_again = false;               // it asked for a GPU too late: the job has to begin on GPUs
  // Two collectives of one group, of `calls`: while one thread waited in the first, another made the second.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> overlap{};
  std::vector<ScriptFrame> stack;  // where it was when it was asked, innermost first
  bool waits = false;              // in a call, when it was asked
  ScriptSite place;                // the user's line there
  std::size_t trains_from = 0;     // the event that its first optimizer step came before
  ScriptTraining training;
  ScriptEnd end;
};

struct ScriptRecord {
  std::vector<ScriptRank> ranks;  // by rank, those that have left a file
  std::vector<FileProblem> problems;
  RankSet sampled;  // the ranks that were run, if the others are assumed to be like them; empty: all were run
  bool was_interrupted = false;  // by a signal: the ranks had not come to an end
};

// True if `device` is the rank's default: on nccl the GPU with its local rank's number, otherwise the CPU.
bool is_own_device(const std::string& device, std::string_view backend, Rank local_rank);
Rank local_rank(const ScriptRank& rank);

// A place as the recorder describes it; may be null.
ScriptSite script_site(const Value* description);
// A call as the recorder describes it. Throws BadFile.
ScriptCall script_call(const Value& description);

// How the rank says that it ended: the last line that says so, in a record that may still be being written. Unknown if
// there is none.
ScriptEnd last_script_end(const std::string& path);

// One rank's record.
ScriptRank read_script_rank(const std::string& text);

// The folder that the places of a script that ran in `folder` are relative to: the root of its repository, from which
// editors and CI start as well; without a repository, `folder`.
std::string root_of_places(const std::string& folder);

// "src/train.py:61", relative to where the script was started; empty if unknown.
std::string place_text(const ScriptRank& rank, const ScriptSite& site);

// Reads every rank*.jsonl of a folder. Throws std::filesystem errors for folders that cannot be listed.
ScriptRecord read_script_record(const std::string& folder);

}  // namespace rollcall::traces
