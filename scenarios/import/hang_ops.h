#pragma once

// Translates the ops of the hang library's format to statements.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/import/hang_values.h"
#include "scenarios/import/scenario_writer.h"
#include "scenarios/json/json_tree.h"

namespace rollcall::scenario {

// Translates one rank's program. Reports ops and fields that the format does not have.
class HangOps {
 public:
  // `orders_streams`: the file says how a device orders launched calls (device_model). Otherwise nothing
  // orders its streams, and calls on several of them become threads.
  HangOps(Diagnostics& diagnostics, bool orders_streams)
      : read_(diagnostics), orders_streams_(orders_streams) {}

  // The statements of a list of ops.
  OrderedJson program(const Json& ops);

 private:
  // The properties that a tensor needs for the call that uses it.
  struct Look {
    Json numel;
    std::optional<Json> dtype;
    std::optional<Json> device;
  };
  using Uses = std::map<std::size_t, Look>;  // by the call's place in the file

  // An op, and the statement it becomes.
  struct Rule {
    std::string_view op;
    std::string_view statement;
    void (HangOps::*translate)(const Json& op, const Rule& rule, OrderedJson& into);
    std::span<const std::string_view> fields;  // that it may have
    std::string_view subject{};                // the one that becomes the statement's value, if one does
  };
  static std::span<const Rule> rules();

  OrderedJson statements(const Json& ops);
  void translate_launches(const std::vector<Json>& ops, OrderedJson& into);
  void translate(const Json& op, OrderedJson& into);
  void repeat(const Json& op, OrderedJson& into);
  void simple(const Json& op, const Rule& rule, OrderedJson& into);
  void with_value(const Json& op, const Rule& rule, OrderedJson& into);
  void raise(const Json& op, const Rule& rule, OrderedJson& into);
  void branches(const Json& op, const Rule& rule, OrderedJson& into);
  void collective(const Json& op, const Rule& rule, OrderedJson& into);
  void batch(const Json& op, const Rule& rule, OrderedJson& into);
  void set(const Json& op, const Rule& rule, OrderedJson& into);
  void about_group(const Json& op, const Rule& rule, OrderedJson& into);
  void about_key(const Json& op, const Rule& rule, OrderedJson& into);
  void compute(const Json& op, const Rule& rule, OrderedJson& into);

  OrderedJson arguments(const Json& op);
  void copy_argument(const Json& field, std::string_view op_name, const std::string& name,
                     OrderedJson& arguments);
  void copy_label(const Json& op, OrderedJson& statement);
  void note_uses(const Json& ops);

  HangValues read_;
  bool orders_streams_;
  std::map<std::string, Uses, std::less<>> uses_;  // by tensor
};

}  // namespace rollcall::scenario
