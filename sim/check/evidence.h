#pragma once

// Evidence: what the judge is told about a run that has come to its end. Made by the simulator from
// its state, by a real run from its op logs, by an importer from a trace. Borrowed, read-only.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/check/matcher.h"
#include "sim/check/message_matcher.h"
#include "sim/dist/process_group.h"

namespace rollcall::check {

struct RankStatus {
  enum class State : std::uint8_t { running, waiting, finished, raised, crashed };

  State state = State::running;
  GroupId group = 0;  // waiting: in which slot
  Rank group_rank = -1;
  std::int64_t seq = -1;
  std::int64_t inputs = -1;        // inputs taken; -1: not counted
  MessageId message = no_message;  // waiting: in this send or receive, and not in a slot
  std::int32_t exception = -1;     // raised, crashed: index into Evidence::exceptions

  bool in_message() const { return message != no_message; }
};

struct Exception {
  std::string type;  // Python's name: "ValueError"
  std::string message;
};

struct GroupEvidence {
  const GroupMembers* members = nullptr;
  const GroupMatcher* matcher = nullptr;
  const MessageMatcher* messages = nullptr;  // null while nobody has sent anything
};

// A slot whose calls disagree, or came from different places. Ranks are global here.
struct Incident {
  Time at = 0;
  GroupId group = 0;
  std::int64_t seq = 0;
  std::vector<OpVariant> variants;  // majority first
};

// A rank that brought a tensor the group cannot take.
struct DeviceIncident {
  enum class Kind : std::uint8_t { cpu_tensor, duplicate_gpu, stray_device };

  Time at = 0;
  Kind kind = Kind::cpu_tensor;
  std::int64_t seq = 0;
  std::vector<Rank> ranks;  // global, ascending: who deviates
  Op op;                    // the first culprit's call
  Device expected;          // stray_device: the device used before
  Rank other = -1;          // duplicate_gpu: who has the device already
};

struct LimitIncident {
  std::string limit;  // "ops", "simulated_time", "output_lines", "pending_calls"
  std::int64_t value = 0;
};

struct Evidence {
  std::string_view backend;               // "nccl" or "gloo"
  std::span<const GroupEvidence> groups;  // by GroupId
  std::span<const RankStatus> ranks;      // by global rank
  std::span<const Exception> exceptions;
  const ScopeTable* scopes = nullptr;
  std::optional<Incident> mismatch;      // the earliest
  std::optional<Incident> mispairing;    // the earliest
  std::optional<DeviceIncident> device;  // the earliest
  std::optional<LimitIncident> limit;
};

}  // namespace rollcall::check
