#pragma once

// BackendTraits: one row per backend with what torch.distributed's functions, the engine, judges, writers of
// reports and readers of recordings ask about it. Nobody else compares a backend's name. A further backend is a
// row here and a folder beside sim/gloo and sim/nccl, for what it does with calls that do not agree
// (sim/match/backend_rules.h).
//
// Facts: ProcessGroupGloo.cpp, ProcessGroupNCCL.cpp and distributed_c10d.py of PyTorch; of the texts those that
// sim/wording/on_backend.h names.

#include <optional>
#include <span>
#include <string_view>

#include "sim/base/error.h"
#include "sim/base/time.h"
#include "sim/c10d/op.h"

namespace rollcall {

// What the real job shows, one line per kind of failure. {op} is the call's name, {hang} the text `hang`.
struct BackendTexts {
  std::string_view hang;   // some members never come to a collective or message
  std::string_view crash;  // the same where the missing rank's process is gone
  std::string_view group_args_mismatch;
  std::string_view op_mismatch;
  std::string_view size_mismatch;
  std::string_view lost_message;  // nobody posts its other end
  std::string_view message_mismatch;
  std::string_view slow_member;  // a member comes after the others have given up
  std::string_view leak;         // a group is never destroyed
};

struct BackendTraits {
  std::string_view name;   // torch's
  std::string_view title;  // as people write it
  DeviceType device;       // where the tensors of its calls live, and objects on their way
  Duration timeout;        // of a call, unless its group or job was given one
  bool queues_calls;  // a call is queued on its rank's GPU, and its host goes on; else the host blocks in it
  bool raises_timeouts;  // a call that waits for too long ends with an error; else only the watchdog's abort
  bool has_tags;         // messages find each other by tag; else in order
  bool has_monitored_barrier;
  bool has_cost_model;  // sim/cost predicts its times
  bool splits_groups;   // split_group works
  bool barrier_takes_device;
  bool exchanges_addresses;    // making a group, every member waits for the others' addresses
  bool destroys_together;      // destroy_process_group is a call of all members
  bool connects_at_first_use;  // a group's communicator is made by the first call that needs it
  bool records_messages;       // its Flight Recorder does, and writes a barrier as the all_reduce that it is
  // What it raises for arguments of a call by itself; asked where Op::malformed is set.
  std::optional<Error> (*argument_error)(const Op& op, Rank group_size, const TorchTraits& torch);
  BackendTexts texts;
};

// All that are known, in the order in which messages list them.
std::span<const BackendTraits> known_backends();

// Null for a name that is not known.
const BackendTraits* find_backend_traits(std::string_view name);

// The same for reports and recordings, which may name other backends: those are taken for the one on GPUs.
const BackendTraits& traits_of(std::string_view name);

// The one that torch takes for tensors there (distributed_c10d.py, Backend.default_device_backend_map).
const BackendTraits& default_backend(DeviceType device);

}  // namespace rollcall
