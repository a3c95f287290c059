#pragma once

// The statements of a scenario, as a table: the keys that name them, and the arguments that they take. The
// published schema says the same in its own language; a test compares the two.
//
// A statement is an object with one operation key. Its value is the subject of the operation (a tensor's
// name, for a collective) or an object with all arguments; arguments may also be next to the key:
//
//   {"all_reduce": "t", "reduce_op": "MAX"}        {"all_reduce": {"tensor": "t", "reduce_op": "MAX"}}

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "scenarios/json/json_tree.h"
#include "sim/c10d/op_table.h"

namespace rollcall::scenario {

enum class StatementKind : std::uint8_t {
  collective,
  barrier,
  message,
  message_batch,
  coalesced,
  objects,
  checkpoint,
  wait,
  synchronize,
  compute,
  kernel,
  record_event,
  wait_event,
  wait_stream,
  print,
  raise,
  exit,
  item,
  fill,
  add,
  copy,
  check,
  touch,
  set_device,
  for_loop,
  repeat,
  for_each_input,
  conditional,
  break_loop,
  choice,
  parallel,
  join,
  forward,
  notify,
  backward,
  step,
  zero_grad,
  state_dict,
  no_sync,
  parallelize,
  eval,
  sharding,
  clip_grad_norm,
  attempt,
  new_group,
  new_subgroups,
  init_device_mesh,
  split_group,
  destroy_process_group,
  monitored_barrier,
  store,
};

struct StatementRule {
  std::string_view key;  // "all_reduce"
  StatementKind kind = StatementKind::barrier;
  std::string_view subject;                   // the key's value as an argument's name; may be empty
  bool takes_object = false;                  // the key's value may be an object with all arguments
  std::vector<std::string_view> arguments{};  // besides the key itself
  std::optional<OpKind> op{};                 // for a collective
  TorchRelease since = TorchRelease::v1_13;   // the first release that has the function
  bool functional = false;                    // of torch.distributed._functional_collectives
};

std::span<const StatementRule> statement_rules();
const StatementRule* find_statement_rule(std::string_view key);

// Names that scenarios may use in the future, and that this version refuses by name.
bool is_planned_argument(std::string_view key);

// A statement whose operation key is known.
class Statement {
 public:
  // Returns nothing if `node` is not an object or has no operation key.
  static std::optional<Statement> recognize(const Json& node);

  const Json& node() const { return node_; }
  const Json& head() const { return head_; }  // the operation key's value
  const StatementRule& rule() const { return *rule_; }
  bool has_object() const { return rule_->takes_object && head_.is(JsonType::object); }

  // An argument, next to the key or in its object.
  std::optional<Json> find(std::string_view argument) const;
  // The statement's subject: the key's value, or the argument of that name in its object.
  std::optional<Json> subject() const;

 private:
  Statement(Json node, Json head, const StatementRule& rule) : node_(node), head_(head), rule_(&rule) {}

  Json node_;
  Json head_;
  const StatementRule* rule_;
};

}  // namespace rollcall::scenario
