#pragma once

// What ranks of a PyTorch script asked of torch.distributed, as traces/recorder has written it down: a file of JSON
// lines per rank (record_file.py says what each line means).
//
// A rank that was killed leaves a file that ends anywhere: what is there counts. Lines of kinds that this version does
// not know are passed over.

#include <cstdint>
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

// A line of the user's, and what of torch made the call from there.
struct ScriptSite {
  std::string file;
  std::int64_t line = 0;  // 0: unknown
  std::string function;
  std::string module;   // the class of the nn.Module in whose method the line is; may be empty
  std::string reason;   // "ddp.bucket", "join.count"; empty: the user's line made the call itself
  bool shadow = false;  // by a rank that has joined, on behalf of the others

  friend bool operator==(const ScriptSite&, const ScriptSite&) = default;
};

struct ScriptCall {
  std::string op;                    // torch.distributed's function
  std::int64_t group = 0;            // which of the rank's groups, in order of creation; 0: the world
  std::vector<std::int64_t> given;   // elements of each tensor
  std::vector<std::int64_t> filled;  // likewise, where they are others than those given
  std::string dtype;
  std::string device;  // "cuda:1" of its tensors; empty: the backend's own for this rank
  std::string reduce_op;
  std::optional<Rank> root;  // global
  std::optional<Rank> peer;  // global; none: receives from anybody
  std::int32_t tag = 0;
  std::vector<std::int64_t> output_splits;
  std::vector<std::int64_t> input_splits;
  std::vector<Rank> ranks;  // of a new_group
  bool is_local = false;    // a new_group of which only its members know: use_local_synchronization
  bool wait_all_ranks = false;
  double timeout_s = 0;  // 0: the default
  ScriptSite site;

  friend bool operator==(const ScriptCall&, const ScriptCall&) = default;
};

struct ScriptEvent {
  enum class Kind : std::uint8_t {
    call,
    batch,
    wait,
    future,
    returned,
    touch,
    kernel,
    // Of streams of the rank's GPU: what follows is on `stream`; it has an event; it waits for one, or for a stream.
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
  bool has_raised = false;           // the call, or the wait for it
  bool was_refused = false;  // a call that raised before any other rank could notice it, or the wait for it
  std::string type{};        // raised: Python's, where known
  std::string message{};     // raised, likewise
  bool was_last_resort = false;  // raised when nothing could move any more: the backend gave up
};

// The script uses a tensor before it waits for the call that works on it.
struct ScriptTouch {
  bool writes = false;
  bool is_of_filled = false;  // of those that the call fills; else of those that it only reads
  ScriptSite site;
};

// What a rank's GPU computes between two of its calls: operations of one kind.
struct ScriptKernel {
  enum class Phase : std::uint8_t { forward, backward, optimizer };

  std::string kind;   // "matmul", "elementwise", ...
  std::string dtype;  // of what is multiplied; empty: nothing is
  double flops = 0;
  double bytes = 0;  // that memory reads and writes
  Phase phase = Phase::forward;
  std::int64_t count = 1;    // that many kernels
  std::int64_t time_ns = 0;  // measured, of all of them; 0: not
};
const char* to_string(ScriptKernel::Phase phase);

// What a rank's tensors take of its GPU when they take most.
struct ScriptMemory {
  struct Holder {
    std::int64_t bytes = 0;
    std::int64_t count = 0;  // of tensors
    std::string part;
    ScriptSite site;  // that made them
  };

  std::int64_t peak = 0;                                    // 0: not recorded
  std::vector<std::pair<std::string, std::int64_t>> parts;  // "parameters", ...: bytes; the largest first
  std::vector<Holder> holders;                              // likewise
};

// Is it only about what the rank's GPU computes, and where?
bool is_of_gpu(const ScriptEvent& event);

struct ScriptFrame {
  std::string file;
  std::int64_t line = 0;
  std::string function;
};

// How a rank's part came to its end. Stopped: by us, because it neither called anything nor ended. Terminated: by its
// launcher, because of others.
struct ScriptEnd {
  enum class How : std::uint8_t { unknown, finished, raised, exited, killed, stopped, terminated };

  How how = How::unknown;  // the record just stops
  std::string type;        // raised: Python's
  std::string message;     // raised
  std::int64_t code = 0;   // exited: os._exit's. killed: the signal; 0: unknown
  ScriptSite site;         // raised, stopped
};

// What the rank's optimizers did until its end.
struct ScriptTraining {
  std::int64_t parameters = 0;  // that were stepped; 0: none, or the record does not say
  std::int64_t steps = 0;
  std::string digest;  // of their values at the end
  ScriptSite site;     // of the first step
};

struct ScriptRank {
  Rank rank = -1;
  Rank world_size = 0;
  Rank ranks_per_host = 0;  // 0: all are on one
  std::string mode;         // "fake", "simulator", "live"
  std::string torch;        // its version
  bool detail = false;      // TORCH_DISTRIBUTED_DEBUG=DETAIL
  std::string script;       // as it was called
  std::string folder;       // that its places are named from
  std::string backend;      // that the script asked for; empty: it has not initialized anything
  double timeout_s = 0;
  ScriptSite init_site;           // where it did, first
  std::vector<ScriptCall> calls;  // each once
  std::vector<ScriptEvent> events;
  std::vector<ScriptTouch> touches;
  std::vector<ScriptKernel> kernels;  // each once
  ScriptMemory memory;
  std::vector<ScriptSite> data_dependent;  // lines that read what was received
  bool calls_in_threads = false;           // several, which may call at the same time
  std::vector<ScriptFrame> stack;          // where it was when it was asked, innermost first
  ScriptSite place;                        // the user's line there
  std::size_t trains_from = 0;             // the event that its first step of an optimizer came before
  ScriptTraining training;
  ScriptEnd end;
};

struct ScriptRecord {
  std::vector<ScriptRank> ranks;  // by rank, those that have left something
  std::vector<FileProblem> problems;
  RankSet sampled;  // the ranks that were run, where the others are taken to be like them; empty: all were
};

// Is `device` the one that a rank has by default: on nccl the GPU of its own number on its host, else no GPU?
bool is_own_device(const std::string& device, std::string_view backend, Rank local_rank);
Rank local_rank(const ScriptRank& rank);

// A place as the recorder describes it; may be null.
ScriptSite script_site(const Value* description);
// A call as the recorder describes it. Throws BadFile.
ScriptCall script_call(const Value& description);

// How the rank says that it ended: the last such line of a record that is still being written. Unknown: it does not.
ScriptEnd last_script_end(const std::string& path);

// One rank's record.
ScriptRank read_script_rank(const std::string& text);

// What places of a script are named from that ran in `folder`: the root of its repository, which editors and CI start
// from as well; without one, the folder.
std::string root_of_places(const std::string& folder);

// "src/train.py:61", seen from where the script was started; empty when unknown.
std::string place_text(const ScriptRank& rank, const ScriptSite& site);

// Every rank*.jsonl of a folder. Throws std::filesystem errors for folders that cannot be listed.
ScriptRecord read_script_record(const std::string& folder);

}  // namespace rollcall::traces
