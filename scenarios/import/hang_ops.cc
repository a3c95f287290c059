#include "scenarios/import/hang_ops.h"

#include <algorithm>
#include <iterator>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/import/hang_rules.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/json/suggest.h"

namespace rollcall::scenario {
namespace {

using Name = std::string_view;

Name name_of(const Json& op) {
  const auto name = op.find("op");
  return name && name->is(JsonType::string) ? name->text() : Name();
}

// An asynchronous call on a stream.
bool is_launch(const Json& op) {
  const auto stream = op.find("stream");
  const auto async = op.find("async");
  return stream && stream->is(JsonType::string) && async && async->is(JsonType::boolean) && async->boolean();
}

}  // namespace

OrderedJson HangOps::program(const Json& ops) {
  uses_.clear();
  note_uses(ops);
  return statements(ops);
}

OrderedJson HangOps::statements(const Json& ops) {
  OrderedJson list = OrderedJson::array();
  if (!ops.is(JsonType::array)) {
    read_.error(ops, fmt::format("expected a list of ops, found {}", to_phrase(ops.type())));
    return list;
  }
  std::vector<Json> launches;  // consecutive launches on streams
  for (Json op : ops.children()) {
    if (is_launch(op)) {
      launches.push_back(op);
      continue;
    }
    translate_launches(launches, list);
    launches.clear();
    translate(op, list);
  }
  translate_launches(launches, list);
  return list;
}

// Translates calls that were only launched, on several streams that nothing orders: the device may begin with any of
// them.
void HangOps::translate_launches(const std::vector<Json>& ops, OrderedJson& into) {
  std::vector<Name> streams;
  for (const Json& op : ops) {
    const Name stream = op.find("stream")->text();
    if (std::ranges::find(streams, stream) == streams.end()) {
      streams.push_back(stream);
    }
  }
  if (orders_streams_ || streams.size() < 2) {
    for (const Json& op : ops) {
      translate(op, into);
    }
    return;
  }
  OrderedJson threads = OrderedJson::array();
  for (const Name stream : streams) {
    OrderedJson thread = OrderedJson::array();
    for (const Json& op : ops) {
      if (op.find("stream")->text() == stream) {
        translate(op, thread);
      }
    }
    threads.push_back(thread);
  }
  into.push_back({{"parallel", threads}});
}

void HangOps::translate(const Json& op, OrderedJson& into) {
  if (op.find("repeat")) {
    repeat(op, into);
    return;
  }
  const Name name = name_of(op);
  const HangOpRule* rule = find_hang_op(name);
  if (rule == nullptr) {
    read_.error(op,
                name.empty() ? std::string("an op is an object with \"op\" or \"repeat\"")
                             : fmt::format("unknown op \"{}\"", name),
                suggest(name, hang_op_names()));
    return;
  }
  for (Json field : op.children()) {
    if (std::ranges::find(rule->fields, field.key()) == rule->fields.end()) {
      const std::vector<Name> known(rule->fields.begin(), rule->fields.end());
      read_.diagnostics().error_at_key(field, fmt::format("\"{}\" has no field \"{}\"", name, field.key()),
                                       suggest(field.key(), known));
    }
  }
  translate_named(op, name, into);
}

void HangOps::translate_named(const Json& op, Name name, OrderedJson& into) {
  const std::string statement(find_hang_op(name)->statement);
  if (name == "choice") {
    branches(op, "options", "choice", into);
  } else if (name == "parallel") {
    branches(op, "threads", "parallel", into);
  } else if (name == "batch_p2p") {
    batch(op, into);
  } else if (name == "set") {
    set(op, into);
  } else if (name == "add" || name == "read" || name == "write" || name == "free" || name == "check") {
    about_tensor(op, name, into);
  } else if (name == "new_group" || name == "comm_split" || name == "destroy_group") {
    about_group(op, name, into);
  } else if (name == "store_set" || name == "store_get") {
    about_key(op, name, into);
  } else if (name == "wait") {
    into.push_back({{statement, read_.required(op, "handle")}});
  } else if (name == "compute") {
    compute(op, into);
  } else if (name == "set_device") {
    into.push_back({{statement, read_.required(op, "device")}});
  } else if (name == "device_sync" || name == "exit") {
    into.push_back({{statement, true}});
  } else if (name == "raise") {
    const auto text = op.find("error");
    into.push_back({{statement, text ? read_.scalar(*text) : OrderedJson("failed")}});
  } else {
    collective(op, name, into);
  }
}

void HangOps::repeat(const Json& op, OrderedJson& into) {
  const OrderedJson times = read_.required(op, "repeat");
  const auto body = op.find("body");
  if (!body) {
    read_.error(op, "\"repeat\" needs a \"body\"");
    return;
  }
  into.push_back({{"repeat", times}, {"do", statements(*body)}});
}

void HangOps::branches(const Json& op, Name member, const char* key, OrderedJson& into) {
  OrderedJson lists = OrderedJson::array();
  if (const auto given = op.find(member); given && given->is(JsonType::array)) {
    for (Json list : given->children()) {
      lists.push_back(statements(list));
    }
  } else {
    read_.error(op, fmt::format("\"{}\" needs a list \"{}\"", key, member));
  }
  into.push_back({{key, lists}});
}

// Translates everything that a call, a message, or a barrier is given.
void HangOps::collective(const Json& op, Name name, OrderedJson& into) {
  OrderedJson given = arguments(op);
  const auto tensor = op.find("tensor");
  const bool returns_in_place = name == "reduce_scatter" && tensor && !op.find("async");
  const std::string result = returns_in_place ? std::string(tensor->text()) + ".part" : "";
  if (returns_in_place) {
    given["output"] = result;
  }
  if (name == "all_to_all" && !op.find("in_splits") != !op.find("out_splits")) {
    read_.error(op, "\"all_to_all\" needs both in_splits and out_splits, or neither");
  }
  into.push_back({{std::string(find_hang_op(name)->statement), given}});
  if (returns_in_place) {
    into.push_back({{"copy", std::string(tensor->text())}, {"from", result}});
  }
}

void HangOps::batch(const Json& op, OrderedJson& into) {
  OrderedJson messages = OrderedJson::array();
  if (const auto ops = op.find("ops"); ops && ops->is(JsonType::array)) {
    for (Json message : ops->children()) {
      if (name_of(message) == "isend" || name_of(message) == "irecv") {
        translate(message, messages);
      } else {
        read_.error(message, "a batch consists of isend and irecv");
      }
    }
  } else {
    read_.error(op, "\"batch_p2p\" needs a list \"ops\"");
  }
  OrderedJson statement = {{"batch_isend_irecv", messages}};
  if (const auto handle = op.find("handle")) {
    statement["as"] = read_.scalar(*handle);
  }
  if (const auto label = op.find("label")) {
    statement["label"] = read_.scalar(*label);
  }
  into.push_back(statement);
}

// Creates the tensor as the next call needs it.
void HangOps::set(const Json& op, OrderedJson& into) {
  OrderedJson statement = {{"fill", read_.required(op, "tensor")}, {"value", read_.required(op, "value")}};
  const auto tensor = op.find("tensor");
  const auto uses = tensor && tensor->is(JsonType::string) ? uses_.find(tensor->text()) : uses_.end();
  if (uses != uses_.end()) {
    const auto next = uses->second.lower_bound(op.offset());
    const Look& look = next != uses->second.end() ? next->second : uses->second.begin()->second;
    statement["numel"] = read_.scalar(look.numel);
    if (look.dtype && read_.dtype_of(*look.dtype) != "float32") {
      statement["dtype"] = read_.dtype_of(*look.dtype);
    }
    if (look.device) {
      statement["device"] = read_.scalar(*look.device);
    }
  }
  into.push_back(statement);
}

void HangOps::about_tensor(const Json& op, Name name, OrderedJson& into) {
  OrderedJson statement = {{std::string(name), read_.required(op, "tensor")}};
  if (name == "add" || name == "check") {
    statement["value"] = read_.required(op, "value");
  }
  into.push_back(statement);
}

void HangOps::about_group(const Json& op, Name name, OrderedJson& into) {
  OrderedJson statement;
  if (name == "new_group") {
    const auto ranks = op.find("ranks");
    statement["new_group"] = ranks ? read_.list_of(*ranks) : OrderedJson::object();
    if (const auto made = op.find("name")) {
      statement["as"] = read_.scalar(*made);
    }
  } else if (name == "destroy_group") {
    const auto group = op.find("group");
    statement["destroy_process_group"] = group ? read_.scalar(*group) : OrderedJson("world");
  } else {
    const auto group = op.find("group");
    statement["split_group"] = OrderedJson::object();
    if (group && read_.scalar(*group) != "world") {
      statement["group"] = read_.scalar(*group);
    }
    if (const auto made = op.find("name")) {
      statement["as"] = read_.scalar(*made);
    }
  }
  if (const auto label = op.find("label")) {
    statement["label"] = read_.scalar(*label);
  }
  into.push_back(statement);
}

void HangOps::about_key(const Json& op, Name name, OrderedJson& into) {
  OrderedJson statement = {{std::string(name), read_.required(op, "key")}};
  const char* field = name == "store_set" ? "value" : "want";
  if (const auto value = op.find(field)) {
    const OrderedJson given = read_.scalar(*value);
    statement[field] = given.is_string() ? given : OrderedJson(given.dump());
  } else if (name == "store_set") {
    statement[field] = "1";
  }
  if (const auto label = op.find("label")) {
    statement["label"] = read_.scalar(*label);
  }
  into.push_back(statement);
}

// In the library, waiting for a key takes none of a rank's own time, but here it does: so the rank computes before the
// wait what it would compute after it.
void HangOps::compute(const Json& op, OrderedJson& into) {
  auto at = into.end();
  while (at != into.begin() && std::prev(at)->contains("store_get")) {
    --at;
  }
  into.insert(at, OrderedJson{{"compute", read_.duration_of(op)}});
}

OrderedJson HangOps::arguments(const Json& op) {
  OrderedJson given = OrderedJson::object();
  const Name name = name_of(op);
  for (const HangWord& argument : hang_arguments()) {
    if (const auto field = op.find(argument.theirs)) {
      copy_argument(*field, name, given);
    }
  }
  if (const auto root = op.find("root")) {
    const bool sends = name == "broadcast" || name == "scatter";
    given[sends ? "src" : "dst"] = read_.scalar(*root);
  }
  return given;
}

// Leaves out defaults (world, float32, SUM), and arguments that a barrier does not have.
void HangOps::copy_argument(const Json& field, Name op_name, OrderedJson& given) {
  const Name key = field.key();
  const std::string name(*translate_hang_word(hang_arguments(), key));
  if (key == "dtype") {
    const OrderedJson dtype = read_.dtype_of(field);
    if (dtype != "float32" && op_name != "barrier") {
      given[name] = dtype;
    }
  } else if (key == "reduce") {
    const OrderedJson reduce = read_.reduce_op_of(field);
    const bool reduces = op_name == "all_reduce" || op_name == "reduce" || op_name == "reduce_scatter";
    if (reduce != "SUM" && reduces) {
      given[name] = reduce;
    }
  } else if (key == "in_splits" || key == "out_splits") {
    given[name] = read_.list_of(field);
  } else if (key == "numel" && op_name == "barrier") {
    return;
  } else if (read_.scalar(field) != "world") {
    given[name] = read_.scalar(field);
  }
}

void HangOps::note_uses(const Json& ops) {
  for (Json op : ops.children()) {
    for (const char* nested : {"body", "options", "threads", "ops"}) {
      if (const auto list = op.find(nested)) {
        note_uses(*list);
      }
    }
    if (op.is(JsonType::array)) {
      note_uses(op);
      continue;
    }
    const auto tensor = op.find("tensor");
    const auto numel = op.find("numel");
    if (!tensor || !tensor->is(JsonType::string) || !numel) {
      continue;
    }
    uses_[std::string(tensor->text())].emplace(op.offset(),
                                               Look{*numel, op.find("dtype"), op.find("device")});
  }
}

}  // namespace rollcall::scenario
