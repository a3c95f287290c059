#pragma once

// Evidence: what the judge gets to know about a run that has ended. The simulator makes it from its state, a real run
// from its op logs, an importer from a trace. Borrowed, read-only.

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/scope_table.h"
#include "sim/c10d/apply.h"
#include "sim/c10d/observer.h"
#include "sim/c10d/process_group.h"
#include "sim/match/matcher.h"
#include "sim/match/message_matcher.h"
#include "sim/report/finding_kinds.h"
#include "sim/report/rank_set.h"
#include "sim/report/report.h"

namespace rollcall::check {

// The calls of a group that are counted together. Those that make, split and destroy groups, and those that make its
// communicator, have a count each, separate from the collectives.
enum class Channel : std::uint8_t { collectives, new_group, split_group, destroy, first_use, store };
inline constexpr std::size_t group_channel_count = 5;  // the store belongs to no group

Channel channel_of(OpKind kind);

struct RankStatus {
  using State = RankClass::State;

  State state = State::running;
  GroupId group = 0;  // waiting: in which slot
  Channel channel = Channel::collectives;
  Rank group_rank = -1;
  std::int64_t seq = -1;           // in the store: index into Evidence::store_waits
  std::int64_t inputs = -1;        // inputs taken; -1: not counted
  bool ran_out = false;            // of inputs; false if the rank left the loop over them
  MessageId message = no_message;  // waiting: in this send or receive, and not in a slot
  std::int32_t exception = -1;     // raised, crashed: index into Evidence::exceptions

  bool waits() const { return state == State::waiting; }
  bool has_failed() const { return state == State::raised || state == State::crashed; }
  bool in_message() const { return message != no_message; }

  // The rank blocks in slot `number` of a group, or in its message with that number.
  void wait_in(GroupId in, Rank member, std::int64_t number, MessageId in_message = no_message) {
    state = State::waiting;
    group = in;
    group_rank = member;
    seq = number;
    message = in_message;
  }
};

struct Exception {
  std::string type;  // Python's name: "ValueError"
  std::string message;
};

struct GroupEvidence {
  const GroupMembers* members = nullptr;
  const GroupMatcher* matcher = nullptr;
  const MessageMatcher* messages = nullptr;  // null while no rank has sent anything
  bool connects_late = false;                // its communicator is made by its members' first calls
  // new_group, split_group, destroy, first_use: null while no rank has called it.
  std::array<const GroupMatcher*, group_channel_count> others{};

  const GroupMatcher* calls(Channel channel) const {
    return channel == Channel::collectives ? matcher : others[static_cast<std::size_t>(channel)];
  }
};

// A slot whose calls disagree, or came from different places. Ranks are global here.
struct Incident {
  Time at = 0;
  GroupId group = 0;
  std::int64_t seq = 0;
  std::vector<OpVariant> variants;  // majority first
  Channel channel = Channel::collectives;
  std::vector<PartMisfit> misfits{};  // where the calls agree and only the sizes of their parts do not
};

// A rank that brought a tensor the group cannot take.
struct DeviceIncident {
  Time at = 0;
  FindingKind kind = FindingKind::cpu_tensor;
  std::int64_t seq = 0;
  std::vector<Rank> ranks;  // global, ascending: those that deviate
  Op op;                    // the first culprit's call
  Device expected;          // stray_device: the device used before
  Rank other = -1;          // duplicate_gpu: the rank that has the device already
};

// Something a rank found out about its own calls and data.
struct RankObservation {
  Time at = 0;
  Rank rank = 0;  // global
  Observation what;
};

// A rank read another value than the one it relies on.
struct StoreIncident {
  Time at = 0;
  Rank rank = 0;  // global
  Op op;
  std::string key;
  std::string got;
  std::string want;
};

// Ranks gave up in a call before anything was proven: others had not arrived in time. Or one did in a message.
struct TimeoutIncident {
  Time at = 0;
  Op op;  // of the lowest rank that waited
  std::int64_t seq = 0;
  Duration limit = 0;
  std::vector<Rank> waiting{};    // global, ascending
  std::vector<Rank> late{};       // global, ascending: had not arrived
  std::vector<Time> came{};       // by `late`: when it arrived after all; -1: never
  bool is_only_lateness = false;  // says nothing of ranks that never came
};

// A group that members have not destroyed. Ranks are global.
struct Leak {
  GroupId group = 0;
  std::vector<Rank> ranks;
};

// Who has set a key of the store: a rank, or `several_set`.
using KeySetters = std::map<std::string, Rank>;
constexpr Rank several_set = -1;
// Which rank has deleted a key that nobody has set since.
using KeyDeleters = std::map<std::string, Rank>;

// A rank's wait in the store.
struct StoreWait {
  Op op;
  std::vector<std::string> keys;  // those that do not exist
};

struct LimitIncident {
  FindingKind limit = FindingKind::ops;
  std::int64_t value = 0;
  RankSet absent{};  // never_connected: the ranks of which nothing was heard
};

struct Evidence {
  std::string_view backend;                             // "nccl" or "gloo"
  const TorchTraits* torch = &traits_of(newest_torch);  // the release that the job ran on
  bool new_group_waits_for_all = false;                 // else its members wait for its members
  std::span<const GroupEvidence> groups;                // by GroupId
  std::span<const RankStatus> ranks;                    // by global rank
  std::span<const Exception> exceptions;
  const std::map<Rank, Site>* raised_at = nullptr;  // of those, where known; may be null
  const ScopeTable* scopes = nullptr;
  std::optional<Incident> mismatch;                 // the earliest
  std::optional<Incident> mispairing;               // the earliest
  std::optional<DeviceIncident> device;             // the earliest
  std::optional<StoreIncident> store;               // the earliest
  std::optional<TimeoutIncident> timeout;           // the earliest
  std::span<const RankObservation> observations{};  // by time, then rank; of each kind one per rank
  std::optional<LimitIncident> limit;
  std::span<const StoreWait> store_waits;
  const KeySetters* key_setters = nullptr;                     // may be null; deleted keys are kept
  const KeyDeleters* key_deleters = nullptr;                   // may be null
  std::span<const std::vector<std::vector<Rank>>> rank_lists;  // by the number that calls about groups carry
  std::span<const Leak> leaks;                                 // by GroupId; empty unless asked for

  const RankStatus& status_of(Rank rank) const { return ranks[static_cast<std::size_t>(rank)]; }
  // What the rank ended with; null if it was no exception.
  const Exception* exception_of(const RankStatus& status) const {
    return status.exception < 0 ? nullptr : &exceptions[static_cast<std::size_t>(status.exception)];
  }
  // `seq`: of the status of a rank that waits for the store.
  const StoreWait& store_wait(std::int64_t seq) const { return store_waits[static_cast<std::size_t>(seq)]; }
};

}  // namespace rollcall::check
