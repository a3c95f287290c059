#pragma once

// Names: the tensors, lists, objects, variables, and works that the statements of a scenario define, with the slots
// that they have in every rank's frame. Collected before anything is lowered, because a statement may use a name that a
// later one, or another list, defines.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/json/json_tree.h"
#include "scenarios/program/expression.h"
#include "scenarios/program/statements.h"

namespace rollcall::scenario {

class Diagnostics;

struct Name {
  enum class Kind : std::uint8_t { tensor, list, variable, objects };

  Kind kind = Kind::tensor;
  SlotIndex slot = no_slot;
};

class Names {
 public:
  Names();

  // Collects the names that the statements of `list`, including blocks inside them, define. Reports a name that is used
  // for two kinds of things. The texts of the tree must outlive this object.
  void collect(const Json& list, Diagnostics& diagnostics);

  std::optional<Name> find(std::string_view name) const;
  std::optional<SlotIndex> find_work(std::string_view name) const;
  // True if a statement makes a group of this name.
  bool makes_group(std::string_view name) const { return groups_.contains(name); }
  const std::set<std::string_view>& groups() const { return groups_; }

  // The known name of this kind that `word` was probably meant to be; empty if none is near.
  std::string_view suggest_like(std::string_view word, Name::Kind kind) const;
  std::string_view suggest_work(std::string_view word) const;

  // Defines a variable that every rank has, such as a coordinate in the mesh. The text must outlive this object.
  SlotIndex define_variable(std::string_view name);

  // Slots without a name of their own.
  SlotIndex add_variable(std::string name);
  SlotIndex add_tensor();
  SlotIndex add_list();

  // Names by slot, as Program stores them.
  const std::vector<std::string>& variables() const { return variables_; }
  const std::vector<std::string>& tensors() const { return tensors_; }
  const std::vector<std::string>& lists() const { return lists_; }
  const std::vector<std::string>& works() const { return work_names_; }
  const std::vector<std::string>& object_lists() const { return object_lists_; }

 private:
  void collect_statement(const Statement& statement, Diagnostics& diagnostics);
  void collect_call(const Statement& statement, Diagnostics& diagnostics);
  void collect_mesh(const Statement& statement);
  std::vector<std::string>& slots_of(Name::Kind kind);
  void declare_work(std::string_view name);
  void declare(const std::optional<Json>& name, Name::Kind kind, Diagnostics& diagnostics);

  std::map<std::string_view, Name> names_;
  std::map<std::string_view, SlotIndex> works_;
  std::set<std::string_view> groups_;
  std::vector<std::string> variables_;
  std::vector<std::string> tensors_;
  std::vector<std::string> lists_;
  std::vector<std::string> work_names_;
  std::vector<std::string> object_lists_;
};

// "a tensor", "a list of objects".
std::string_view to_phrase(Name::Kind kind);

// "rank", "is_last_joiner": names that no scenario may give to anything else.
bool is_reserved_name(std::string_view name);

// True for letters, digits, _ and dots, without a digit at the start: what expressions read as a name. Tensors, lists,
// and variables have such names; "x[0]" and "1+1" already mean something else.
bool is_name(std::string_view text);
std::string not_a_name(std::string_view text);  // the error message for a text that is not a name

}  // namespace rollcall::scenario
