#pragma once

// Translates the ops of the hang library's format to statements.

#include <map>
#include <optional>
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

  OrderedJson statements(const Json& ops);
  void translate_launches(const std::vector<Json>& ops, OrderedJson& into);
  void translate(const Json& op, OrderedJson& into);
  void translate_named(const Json& op, std::string_view name, OrderedJson& into);
  void repeat(const Json& op, OrderedJson& into);
  void branches(const Json& op, std::string_view member, const char* key, OrderedJson& into);
  void collective(const Json& op, std::string_view name, OrderedJson& into);
  void batch(const Json& op, OrderedJson& into);
  void set(const Json& op, OrderedJson& into);
  void about_group(const Json& op, std::string_view name, OrderedJson& into);
  void about_key(const Json& op, std::string_view name, OrderedJson& into);
  void compute(const Json& op, OrderedJson& into);
  void about_tensor(const Json& op, std::string_view name, OrderedJson& into);

  OrderedJson arguments(const Json& op);
  void copy_argument(const Json& field, std::string_view op_name, OrderedJson& arguments);
  void note_uses(const Json& ops);

  HangValues read_;
  bool orders_streams_;
  std::map<std::string, Uses, std::less<>> uses_;  // by tensor
};

}  // namespace rollcall::scenario
