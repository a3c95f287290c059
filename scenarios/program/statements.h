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

class Lowering;
class Statement;

// The names that a statement declares, for others to use.
enum class Declares : std::uint8_t {
  nothing,
  call,       // tensors, outputs and handles, like a collective
  calls,      // the same, and those of the calls in its list
  tensor,     // its subject
  variable,   // its "as"
  objects,    // its "output"
  group,      // its "as"
  mesh,       // groups: its dimensions
  in_blocks,  // what the statements inside it declare
  in_lists,   // likewise; its value is the lists of them
};

// Everything about a statement but its description in the schema and the function that lowers it.
struct StatementRule {
  std::string_view key;                            // "all_reduce"
  void (Lowering::*lower)(const Statement&) = {};  // emits its instructions
  std::string_view subject{};                      // the key's value as an argument's name; may be empty
  std::vector<std::string_view> arguments{};       // besides the key itself
  Declares declares = Declares::nothing;
  bool blocks_rank = false;  // may wait in a way that gives the other threads of its rank no chance to run
  TorchRelease since = TorchRelease::v1_13;  // the first release that has the function
  std::optional<OpKind> op{};                // for a collective
  bool functional = false;                   // of torch.distributed._functional_collectives
  // The key's value may be an object with all arguments. This follows from the others: the subject is an argument, too,
  // or there is none.
  bool takes_object = false;
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
