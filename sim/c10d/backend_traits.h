#pragma once

// BackendTraits: one row per backend, which torch.distributed's functions, the engine, the judges, the writers of
// reports and the readers of recordings ask. No other code compares a backend's name. A new backend is a row here and a
// folder next to sim/gloo and sim/nccl, for how it handles calls that do not agree (sim/match/backend_rules.h).
//
// Facts: ProcessGroupGloo.cpp, ProcessGroupNCCL.cpp and distributed_c10d.py of PyTorch; for the texts, the sources that
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
  std::string_view hang;   // some members never reach a collective or message
  std::string_view crash;  // the same where the missing rank's process is gone
  std::string_view group_args_mismatch;
  std::string_view op_mismatch;
  std::string_view size_mismatch;
  std::string_view lost_message;  // the peer never posts its end
  std::string_view message_mismatch;
  std::string_view slow_member;  // a member arrives after the others have given up
  std::string_view leak;         // a group is never destroyed
};

struct BackendTraits {
  std::string_view name;   // torch's
  std::string_view title;  // as people write it
  DeviceType device;       // where the tensors of its calls live, and objects in transit
  Duration timeout;        // of a call, unless its group or job was given one
  bool queues_calls;       // a call is queued on its rank's GPU and its host continues; else the host blocks
  bool raises_timeouts;    // a call that waits too long ends with an error; else only the watchdog's abort
  bool has_tags;           // messages are matched by tag; else in order
  bool has_monitored_barrier;
  bool has_cost_model;  // sim/cost predicts its times
  bool splits_groups;   // split_group works
  bool barrier_takes_device;
  bool exchanges_addresses;    // making a group, each member waits for the others' addresses
  bool destroys_together;      // destroy_process_group is a call of all members
  bool connects_at_first_use;  // a group's communicator is made by the first call that needs it
  bool records_messages;       // its Flight Recorder does, and records a barrier as the all_reduce that it is
  // The error that this backend itself raises for a call's arguments; called where Op::malformed is set.
  std::optional<Error> (*argument_error)(const Op& op, Rank group_size, const TorchTraits& torch);
  BackendTexts texts;
};

// All known backends, in the order in which messages list them.
std::span<const BackendTraits> known_backends();

// Null for an unknown name.
const BackendTraits* find_backend_traits(std::string_view name);

// The same for reports and recordings. They may name other backends, which are treated as the one on GPUs.
const BackendTraits& traits_of(std::string_view name);

// torch's default for tensors on `device` (distributed_c10d.py, Backend.default_device_backend_map).
const BackendTraits& default_backend(DeviceType device);

}  // namespace rollcall
