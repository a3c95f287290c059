#pragma once

// ValueReader: converts the arguments of statements from JSON to a Program's. Every function reports errors
// and then returns a harmless value, so that one pass over a file finds many errors.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/json/json_tree.h"
#include "scenarios/program/names.h"
#include "scenarios/program/program.h"
#include "sim/cost/roofline.h"
#include "sim/torch/torch_release.h"

namespace rollcall::scenario {

class Diagnostics;
class SourceText;

// What statements depend on in the rest of the file.
struct ScenarioFacts {
  Rank world_size = 1;
  Rank local_ranks = 1;  // the most ranks on one host
  TorchRelease torch = newest_torch;
  bool has_inputs = false;
  std::vector<std::string> groups;                         // besides "world"; those of the mesh by dimension
  std::vector<std::string> mesh;                           // the dimensions' names, flattened ones too
  std::map<std::string, Rank, std::less<>> group_sizes{};  // of `groups`
  std::vector<std::pair<std::string, std::int64_t>> constants{};  // variables that the file's matrix sets
  std::vector<std::string> objects;                               // joinables, in order
  const cost::Gpu* gpu = nullptr;  // of the cluster; null: it has none, or it is unknown
  std::string no_gpu{};            // why; empty while the cluster is still to be set
};

// The names that an expression may use at its position.
struct NameScope {
  bool in_hook = false;                                         // kwargs
  bool in_post_hook = false;                                    // is_last_joiner
  TableIndex handler = none;                                    // error, error_type: of this `try`
  bool takes_list = false;                                      // peer
  std::vector<std::pair<std::string_view, SlotIndex>> loops{};  // loop variables, innermost last
};

class ValueReader {
 public:
  // All are borrowed for the lifetime of the object.
  ValueReader(const ScenarioFacts& facts, const SourceText& source, Names& names, Program& program,
              Diagnostics& diagnostics)
      : facts_(facts), source_(source), names_(names), program_(program), diagnostics_(diagnostics) {}

  void error(const Json& at, std::string message, std::string_view suggestion = {});

  NameScope& scope() { return scope_; }

  // Reads an argument into `target` if it is given: given(node.find("group"), call.group, &ValueReader::group).
  template <typename Target, typename Value>
  void given(const std::optional<Json>& value, Target& target, Value (ValueReader::*read)(const Json&)) {
    if (value) {
      target = (this->*read)(*value);
    }
  }

  // A whole number or an expression; true and false count as 1 and 0.
  Operand integer(const Json& value);
  // The same; a constant must be in [least, most]. `what` names it in the message.
  Operand integer_in(const Json& value, std::int64_t least, std::int64_t most, std::string_view what);
  // Any number, or an expression.
  Operand number(const Json& value);
  // A number that is written as one, or "inf"; no expression. `what` names it in the message.
  double constant(const Json& value, std::string_view what);
  // Flops or bytes: a number that is not negative, a size such as "64MiB", or an expression.
  Operand amount(const Json& value);
  // A rank of the world.
  Operand rank(const Json& value);

  bool flag(const Json& value);
  std::int64_t bytes(const Json& value);  // "25MiB"; at least 1
  std::string_view string(const Json& value, std::string_view what);
  Duration duration(const Json& value);
  std::int64_t fraction(const Json& value);  // "10%", in millionths
  Dtype dtype(const Json& value);
  ReduceOp reduce_op(const Json& value);
  std::optional<DeviceTemplate> device(const Json& value);
  TableIndex shape(const Json& value);
  Kwargs kwargs(const Json& value);

  // no_slot for the world.
  SlotIndex group(const Json& value);
  // A group that a statement makes.
  SlotIndex made_group(const Json& name);
  SlotIndex made_group_named(const Json& at, std::string_view name);
  TableIndex object(const Json& value);
  SlotIndex work(const Json& value);
  // A variable that the statement declares.
  SlotIndex variable(const Json& value);
  SlotIndex stream(const Json& value);
  SlotIndex event(const Json& value);
  // A tensor to write, by its plain name.
  SlotIndex tensor(const Json& value);
  // A tensor to read: "t", or "parts[2]" of a list.
  TensorName tensor_name(const Json& value);
  // Makes a run keep the tensor's contents at its end; `entry`'s key is its name.
  void watch(const Json& entry);
  // Text with holes.
  TableIndex text(const Json& value);
  // Any JSON value. Its strings are texts with holes.
  ObjectTemplate object_value(const Json& value);
  // A list of whole numbers or expressions.
  std::vector<Operand> integers(const Json& value, std::string_view what);

  // The same string gives the same index.
  TableIndex intern(std::string_view text);
  // True if this expression's value differs by peer.
  bool mentions_peer(const Operand& operand) const;

 private:
  SlotIndex group_slot(std::string_view name, bool is_made);
  Operand expression(const Json& value, std::string_view text, std::size_t begin);
  NameLookup look_up(std::string_view name);
  NameLookup look_up_builtin(std::string_view name) const;
  NameLookup look_up_kwarg(std::string_view name);
  NameLookup unknown_name(std::string_view name) const;
  std::optional<TensorName> find_tensor(std::string_view text) const;
  void hole(Text& text, const Json& value, std::string_view inside, std::size_t begin);
  void error_inside(const Json& value, std::size_t position, std::string message,
                    std::string_view suggestion = {});

  const ScenarioFacts& facts_;
  const SourceText& source_;
  Names& names_;
  Program& program_;
  Diagnostics& diagnostics_;
  NameScope scope_;
  std::map<std::string, TableIndex, std::less<>> interned_;
  std::map<std::string, SlotIndex, std::less<>> group_slots_;
};

}  // namespace rollcall::scenario
