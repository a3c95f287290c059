#pragma once

// Converts the values of the hang library's format to those of scenarios.

#include <span>
#include <string>
#include <string_view>

#include "scenarios/import/scenario_writer.h"
#include "scenarios/json/json_tree.h"

namespace rollcall::scenario {

class Diagnostics;

// A word of the hang library, and ours for it.
struct HangWord {
  std::string_view theirs;
  std::string_view ours;
};

// Reports values that the format does not have, and returns a harmless value instead.
class HangValues {
 public:
  // Borrowed.
  explicit HangValues(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  OrderedJson scalar(const Json& value);   // a number or a string, unchanged
  OrderedJson list_of(const Json& value);  // a list of scalars
  OrderedJson required(const Json& op, std::string_view field);
  OrderedJson dtype_of(const Json& value);      // "f32" is "float32"
  OrderedJson reduce_op_of(const Json& value);  // "sum" is "SUM"
  OrderedJson duration_of(const Json& op);      // "seconds", with their unit

  void error(const Json& at, std::string message, std::string_view suggestion = {});
  Diagnostics& diagnostics() { return diagnostics_; }

 private:
  OrderedJson translated(const Json& value, std::string_view what, std::span<const HangWord> table,
                         std::string_view otherwise);

  Diagnostics& diagnostics_;
};

}  // namespace rollcall::scenario
