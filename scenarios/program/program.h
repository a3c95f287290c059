#pragma once

// Program: the statements of a scenario, lowered once when the file is read and shared by all ranks.
//
// Blocks are flattened to one list of instructions with jumps; names have become slots of the rank's frame;
// texts and argument lists are in separate tables. Running a rank needs no JSON, no names and, in steady
// state, no allocation. Only `join`, `try`, and `forward` run a part of the list by recursion.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "scenarios/program/block.h"
#include "scenarios/program/devices.h"
#include "scenarios/program/expression.h"
#include "scenarios/program/host_statements.h"
#include "scenarios/program/objects.h"
#include "scenarios/program/operand.h"
#include "sim/c10d/object.h"
#include "sim/c10d/observer.h"
#include "sim/c10d/op.h"
#include "sim/cost/roofline.h"
#include "sim/train/join.h"

namespace rollcall::scenario {

// The most elements of one tensor: 400 GB of float32. Times the largest world, this still fits in 63 bits.
inline constexpr std::int64_t numel_max = 100'000'000'000;

// Variables that every rank has. Later slots are the scenario's own.
namespace builtin {
inline constexpr SlotIndex rank = 0;
inline constexpr SlotIndex local_rank = 1;
inline constexpr SlotIndex world_size = 2;
inline constexpr SlotIndex is_last_joiner = 3;  // in post_hook
inline constexpr SlotIndex peer = 4;            // in `value` of an op that takes a list: the part's rank
inline constexpr SlotIndex count = 5;
}  // namespace builtin

// A tensor that a statement works on, and how to make it.
struct TensorSpec {
  SlotIndex slot = no_slot;  // of the frame's tensors
  bool scratch = false;      // has no name: may be reused by the next statement
  bool creates = false;      // makes the tensor if the rank has none of this name
  std::optional<Dtype> dtype;
  std::optional<DeviceTemplate> device;
  Operand numel;
  TableIndex shape = none;  // of Program::shapes; instead of numel
  Operand value;            // every element, set before the call
};

// A tensor that a statement reads: by name, or one of a list's.
struct TensorName {
  SlotIndex slot = no_slot;  // of the frame's tensors, or lists
  bool is_list = false;
  std::int32_t element = -1;  // of the list; -1: all of them
};

// A collective call.
struct Collective {
  OpKind kind = OpKind::barrier;
  ReduceOp reduce = ReduceOp::sum;
  bool async_op = false;
  bool functional = false;         // the result is a tensor of its own, which waits at its first use
  bool value_has_peer = false;     // the parts of a list differ
  SlotIndex group = no_slot;       // of the frame's groups; no_slot: world
  SlotIndex work = no_slot;        // of the frame's works: `as`
  SlotIndex output = no_slot;      // of the frame's tensors or lists, depending on the kind
  SlotIndex input_list = no_slot;  // of the frame's lists, if the kind takes one
  TableIndex label = none;         // of Program::strings
  TableIndex splits = none;        // of Program::splits; all_to_all_single
  SlotIndex stream = no_slot;      // of the frame's streams; no_slot: the default stream
  Operand root;                    // global rank
  Operand factor;                  // with premul_sum; absent: 1
  TensorSpec tensor;               // for a barrier, only the device counts
};

// How an all_to_all_single cuts its tensors: one number per member, or none for equal parts.
struct Splits {
  std::vector<Operand> output;
  std::vector<Operand> input;
};

// A send or a receive: a statement of its own, or one of a batch.
struct MessageCall {
  OpKind kind = OpKind::send;
  bool blocks = true;          // send and recv; isend and irecv return at once
  SlotIndex group = no_slot;   // of the frame's groups; no_slot: world
  SlotIndex work = no_slot;    // of the frame's works; isend, irecv: `as`
  SlotIndex source = no_slot;  // of the frame's variables; recv: `as`, the sender
  SlotIndex stream = no_slot;  // of the frame's streams
  TableIndex label = none;     // of Program::strings
  Operand peer;                // global rank; absent: from anyone
  Operand tag;
  TensorSpec tensor;
};

// batch_isend_irecv: Program::messages from `first` on.
struct MessageBatch {
  TableIndex first = none;
  std::uint32_t count = 0;
  SlotIndex work = no_slot;
  SlotIndex stream = no_slot;
  TableIndex label = none;
};

// An object as the file writes it. Its texts may have holes.
struct ObjectTemplate {
  using List = std::vector<ObjectTemplate>;
  struct Entry;
  using Dict = std::vector<Entry>;
  struct TextOf {
    TableIndex text = none;  // of Program::texts
  };
  std::variant<Object, TextOf, List, Dict> value;
};

struct ObjectTemplate::Entry {
  std::string name;
  ObjectTemplate object;
};

// _coalescing_manager: Program::collectives from `first` on.
struct CoalescedCalls {
  TableIndex first = none;
  std::uint32_t count = 0;
  bool async_ops = false;
  SlotIndex group = no_slot;  // of the frame's groups; no_slot: world
  SlotIndex work = no_slot;   // of the frame's works: `as`
  TableIndex label = none;    // of Program::strings
};

// dcp.save, dcp.load.
struct CheckpointCall {
  bool saves = true;
  bool no_dist = false;
  SlotIndex group = no_slot;        // of the frame's groups; no_slot: world
  TableIndex label = none;          // of Program::strings
  TableIndex checkpoint_id = none;  // of Program::texts
  std::vector<SlotIndex> tensors;   // of the frame's tensors
  std::vector<SlotIndex> shards;    // likewise: each rank has a part
  std::vector<TableIndex> objects;  // of Program::objects: models
};

// all_gather_object and similar calls.
struct ObjectCall {
  enum class Kind : std::uint8_t { all_gather, broadcast, gather, scatter, send, recv };

  Kind kind = Kind::all_gather;
  SlotIndex group = no_slot;   // of the frame's groups; no_slot: world
  SlotIndex output = no_slot;  // of the frame's object lists; no_slot: it is not read
  TableIndex label = none;     // of Program::strings
  Operand root;                // global rank; for a message, the peer; absent: from anyone
  std::vector<ObjectTemplate> objects;
};

// Text with holes: "rank {rank} counted {count}".
struct TextPiece {
  struct Literal {
    TableIndex text = none;  // of Program::strings
  };
  struct Number {
    TableIndex expression = none;
  };
  struct ErrorMessage {
    TableIndex caught = none;  // of the frame's caught errors
  };
  struct ErrorType {
    TableIndex caught = none;
  };
  struct Objects {
    SlotIndex list = no_slot;  // of the frame's object lists
  };
  struct Elements {
    TensorName tensor;
    bool is_repr = false;  // numbers as Python's repr shows them: "1.0"
  };
  std::variant<Literal, Number, Elements, ErrorMessage, ErrorType, Objects> piece;
};
using Text = std::vector<TextPiece>;

// A `join`: its arguments.
struct JoinCall {
  std::vector<TableIndex> objects;  // of Program::objects
  JoinOptions options;
};

// One forward or backward of a model.
struct ModelPass {
  bool grad_enabled = true;
  std::vector<std::uint32_t> unused;  // parameters that it does not use; for a fully_shard, units
  Operand value;                      // backward: every element of the gradients; absent: 1
};

// Alternatives, of which each rank takes one (choice), or all concurrently (parallel).
struct Branches {
  std::vector<Block> blocks;
  Address end = 0;
};

// The instructions. A target is the address to continue at.
namespace action {
struct Collect {
  TableIndex call = none;  // of Program::collectives
};
struct Wait {
  SlotIndex work = no_slot;
  Duration timeout = 0;        // 0: none
  SlotIndex stream = no_slot;  // of the frame's streams: the one that waits
};
struct Drop {
  SlotIndex work = no_slot;
};
struct Exchange {
  TableIndex message = none;  // of Program::messages
};
struct ExchangeBatch {
  TableIndex batch = none;  // of Program::batches
};
struct Coalesce {
  TableIndex calls = none;  // of Program::coalesced
};
struct Checkpoint {
  TableIndex call = none;  // of Program::checkpoint_calls
};
struct ExchangeObjects {
  TableIndex call = none;  // of Program::object_calls
};
struct Synchronize {};
struct Touch {
  TensorName tensor;
  Observation::Access access = Observation::Access::read;
};
struct Choose {
  TableIndex branches = none;  // of Program::branches
};
struct Parallel {
  TableIndex branches = none;
};
struct Compute {
  Duration duration = 0;
  std::int64_t jitter = 0;  // in millionths of the duration: at most this much is added
};
// On the rank's GPU. Either a duration, or work whose duration follows from a roofline.
struct LaunchKernel {
  Duration duration = 0;
  Operand flops;  // absent: the duration counts, or only bytes
  Operand bytes;
  cost::Precision precision = cost::Precision::half;
  cost::KernelKind kind = cost::KernelKind::matmul;
  TableIndex name = none;      // of Program::strings
  SlotIndex stream = no_slot;  // of the frame's streams
  std::int64_t jitter = 0;     // as Compute's

  bool by_roofline() const { return flops || bytes; }
};
struct RecordEvent {
  SlotIndex event = no_slot;   // of the frame's events
  SlotIndex stream = no_slot;  // of the frame's streams
};
struct WaitEvent {
  SlotIndex event = no_slot;
  SlotIndex stream = no_slot;
};
struct WaitStream {
  SlotIndex awaited = no_slot;
  SlotIndex stream = no_slot;
};
struct Print {
  TableIndex text = none;  // of Program::texts
};
struct Raise {
  TableIndex type = none;  // of Program::strings
  TableIndex text = none;  // of Program::texts
};
struct Exit {};
struct Item {
  TensorName tensor;
  SlotIndex variable = no_slot;
};
struct Fill {
  TableIndex tensor = none;  // of Program::tensors
};
struct Add {  // target += tensor, or value
  SlotIndex target = no_slot;
  TensorName tensor;  // slot is no_slot: `value` is added
  Operand value;
};
struct Copy {
  SlotIndex target = no_slot;
  TensorName source;
};
struct Check {
  TensorName tensor;
  TableIndex name = none;  // of Program::strings
  Operand value;
};
struct SetDevice {
  DeviceTemplate device;
};
struct CallGroup {
  TableIndex call = none;  // of Program::group_statements
};
struct CallStore {
  TableIndex call = none;  // of Program::store_statements
};
struct Jump {
  Address target = 0;
};
struct JumpUnless {
  Operand condition;
  Address target = 0;
};
struct LoopBegin {              // counter = first; jumps to `end` unless that is below `last`
  SlotIndex counter = no_slot;  // of the frame's variables
  SlotIndex bound = no_slot;    // of the frame's variables: `last`, computed once
  TableIndex loop = none;       // of Program::loops
  Address end = 0;
};
struct LoopNext {  // ++counter; jumps to `body` while it is below the bound
  SlotIndex counter = no_slot;
  SlotIndex bound = no_slot;
  bool takes_inputs = false;
  Address body = 0;
};
struct EnterJoin {         // the body follows, up to `end`
  TableIndex call = none;  // of Program::joins
  Address end = 0;
};
struct Forward {
  TableIndex object = none;
};
struct Notify {
  TableIndex object = none;
};
struct ModelForward {  // the module's own statements follow, up to `end`
  TableIndex object = none;
  TableIndex pass = none;  // of Program::passes
  Address end = 0;
};
struct Backward {
  TableIndex object = none;
  TableIndex pass = none;
};
struct Step {
  TableIndex object = none;
};
struct ZeroGrad {
  TableIndex model = none;  // an optimizer stands for its model
  bool set_to_none = false;
};
struct StateDict {
  TableIndex object = none;
  bool consolidates = false;
  Operand to;  // the rank inside the group that gathers; absent: 0
};
struct RunParallel {
  TableIndex object = none;
  ParallelVerb verb = ParallelVerb::forward;
};
struct InitMesh {
  TableIndex mesh = none;  // of Program::meshes
};
struct EnterNoSync {  // the body follows, up to `end`
  TableIndex object = none;
  Address end = 0;
};
struct ShardingCall {  // a method of FSDPModule
  enum class Method : std::uint8_t {
    unshard,
    reshard,
    set_requires_gradient_sync,
    set_requires_all_reduce,
    set_reshard_after_forward,
    set_reshard_after_backward,
    set_is_last_backward,
  };
  TableIndex object = none;
  Method method = Method::unshard;
  std::uint32_t unit = 0;
  bool value = true;
};
struct ClipGradNorm {
  TableIndex object = none;
  double max_norm = 1;
  double norm_type = 2;
};
struct Try {  // the body follows, up to `handler`; the handler is in [handler, end)
  Address handler = 0;
  Address end = 0;
  TableIndex caught = none;  // of the frame's caught errors
};
}  // namespace action

using Action =
    std::variant<action::Collect, action::Wait, action::Drop, action::Exchange, action::ExchangeBatch,
                 action::ExchangeObjects, action::Coalesce, action::Checkpoint, action::Synchronize,
                 action::Touch, action::Choose, action::Parallel, action::Compute, action::LaunchKernel,
                 action::RecordEvent, action::WaitEvent, action::WaitStream, action::Print, action::Raise,
                 action::Exit, action::Item, action::Fill, action::Add, action::Copy, action::Check,
                 action::SetDevice, action::Jump, action::JumpUnless, action::LoopBegin, action::LoopNext,
                 action::EnterJoin, action::Forward, action::Notify, action::ModelForward, action::Backward,
                 action::Step, action::ZeroGrad, action::StateDict, action::RunParallel, action::InitMesh,
                 action::EnterNoSync, action::ShardingCall, action::ClipGradNorm, action::Try,
                 action::CallGroup, action::CallStore>;

struct Instruction {
  Action action;
  std::uint32_t line = 0;  // of the statement, or of the source line it represents
  std::uint32_t column = 0;
  TableIndex file = none;  // of Program::strings, if the statement names a source line
};

// Adds an entry to one of the Program's tables, and returns its place there.
template <typename Entry>
TableIndex add_entry(std::vector<Entry>& table, Entry entry) {
  table.push_back(std::move(entry));
  return static_cast<TableIndex>(table.size() - 1);
}

// The range of a loop.
struct Loop {
  Operand first;
  Operand last;  // absent: the rank's number of inputs
};

// A tensor that expectations are about.
struct WatchedTensor {
  TensorName tensor;
  std::string name;  // as the file writes it
};

struct Program {
  std::string file;  // sites point to it: must outlive the run
  std::vector<Instruction> code;
  std::vector<Expression> expressions;
  std::vector<Collective> collectives;
  std::vector<Splits> splits;
  std::vector<MessageCall> messages;
  std::vector<MessageBatch> batches;
  std::vector<ObjectCall> object_calls;
  std::vector<CoalescedCalls> coalesced;
  std::vector<CheckpointCall> checkpoint_calls;
  std::vector<Branches> branches;
  std::vector<TensorSpec> tensors;
  std::vector<Shape> shapes;
  std::vector<Loop> loops;
  std::vector<Text> texts;
  std::deque<std::string> strings;  // never moves: Error keeps a pointer to its type's name
  std::vector<JoinCall> joins;
  std::vector<ObjectSpec> objects;
  std::vector<ModelPass> passes;
  std::vector<std::string> variables;     // names by slot
  std::vector<std::string> tensor_names;  // by slot; empty for scratch
  std::vector<std::string> list_names;    // by slot; empty for scratch
  std::vector<std::string> groups;        // names by slot
  std::vector<bool> makes_group;          // by slot: a statement makes it
  std::vector<GroupStatement> group_statements;
  std::vector<StoreStatement> store_statements;
  std::vector<MeshStatement> meshes;
  SlotIndex stage = no_slot;  // variables, if there is a pipeline
  SlotIndex microbatch = no_slot;
  std::vector<SlotIndex> mesh_variables;                      // by dimension: the rank's coordinate
  std::vector<std::pair<SlotIndex, std::int64_t>> constants;  // the same value on every rank
  std::vector<std::string> object_lists;                      // names by slot
  std::vector<std::pair<std::string, SlotIndex>> kwargs;  // the names expressions use, and their variables
  std::vector<std::string> work_names;                    // asynchronous calls, by slot
  std::vector<std::string> streams;                       // names by slot
  std::vector<std::string> events;                        // likewise
  std::vector<WatchedTensor> watched;
  std::size_t tries = 0;      // slots for caught errors
  bool synchronizes = false;  // a statement waits for everything issued
  bool checks = false;        // a statement checks a tensor

  // The object of this index, if it is of this kind. While the file is read, later objects are of no kind.
  template <typename Kind>
  const Kind* find(TableIndex object) const {
    return object < objects.size() ? std::get_if<Kind>(&objects[object].kind) : nullptr;
  }
  // True if it is of one of these kinds.
  template <typename... Kinds>
  bool is(TableIndex object) const {
    return (... || (find<Kinds>(object) != nullptr));
  }
};

}  // namespace rollcall::scenario
