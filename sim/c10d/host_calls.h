#pragma once

// Calls that concern hosts and not tensors: about groups, the store, and the barrier that names missing ranks. They are
// data, like Op, so that all code behind Backend reads one value.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/c10d/op.h"

namespace rollcall {

using RankList = std::vector<Rank>;

// new_group, split_group or destroy_process_group, as op.kind says.
struct GroupCall {
  Op op;  // on the world for new_group, on the parent for split_group, on the group itself to destroy it
  // Global ranks, ascending; new_group has one list, split_group one per new group. The list of all ranks is left
  // empty, so that a million ranks need not hold a million lists of a million.
  std::vector<RankList> ranks{};
  std::optional<Duration> timeout{};  // for making the group and for its calls; empty: the run's
  bool timeout_is_default = false;    // the program did not name it
  std::string name{};                 // empty: the backend chooses one
  bool is_local = false;              // new_group: a call of the members only
  bool is_on_gloo = false;            // new_group: in a job on NCCL. Members are connected when it is made
};

struct StoreCall {
  enum class Kind : std::uint8_t { set, get, add, wait, check, compare_set, delete_key, num_keys };

  Op op{};
  Kind kind = Kind::get;
  std::vector<std::string> keys{};    // wait and check take several, num_keys none, the others one
  std::string prefix{};               // num_keys: what the counted keys begin with
  std::string value{};                // set, compare_set
  std::string expected{};             // compare_set
  std::int64_t amount = 0;            // add
  bool is_blind = false;              // add: the caller ignores the sum
  std::optional<Duration> timeout{};  // get, wait; empty: the run's
  std::optional<std::string> want{};  // get: the value that the program relies on. Another one is a finding
};

// True if it names as many keys as its kind takes: a call that arrives over a wire may hold anything.
bool is_sound(const StoreCall& call);

// "store_set", as in scenario files and timelines; empty for other names.
std::string_view to_string(StoreCall::Kind kind);
std::optional<StoreCall::Kind> parse_store_kind(std::string_view name);

// True if there is a value at its key afterwards.
inline bool sets_key(const StoreCall& call) {
  using Kind = StoreCall::Kind;
  return call.kind == Kind::set || call.kind == Kind::add || call.kind == Kind::compare_set;
}

struct StoreReply {
  std::string value{};      // get, compare_set
  std::int64_t number = 0;  // add, num_keys; 1 for yes: check, delete_key
};

struct MonitoredBarrierLimits {
  std::optional<Duration> timeout{};  // of rank 0; empty: the run's
  bool wait_all_ranks = false;        // name all missing ranks, not only the first
};

}  // namespace rollcall
