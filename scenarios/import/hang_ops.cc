#include "scenarios/import/hang_ops.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/suggest.h"

namespace rollcall::scenario {
namespace {

using Name = std::string_view;

constexpr std::array<Name, 14> collective_fields{"op",     "group", "numel",  "dtype",  "reduce",
                                                 "root",   "async", "handle", "stream", "device",
                                                 "tensor", "value", "label",  "tag"};
constexpr std::array<Name, 13> splits_fields{"op",     "group",     "numel",     "dtype",  "async",
                                             "handle", "stream",    "device",    "tensor", "value",
                                             "label",  "in_splits", "out_splits"};
constexpr std::array<Name, 13> message_fields{"op",    "src",    "dst",    "numel",  "dtype",
                                              "group", "label",  "device", "tensor", "value",
                                              "tag",   "handle", "stream"};
constexpr std::array<Name, 5> batch_fields{"op", "ops", "handle", "label", "stream"};
// Labels, and streams of ops that do not communicate, only inform the reader.
constexpr std::array<Name, 4> handle_fields{"op", "handle", "label", "stream"};
constexpr std::array<Name, 5> tensor_fields{"op", "tensor", "value", "label", "stream"};
constexpr std::array<Name, 4> compute_fields{"op", "seconds", "label", "stream"};
constexpr std::array<Name, 3> device_fields{"op", "device", "label"};
constexpr std::array<Name, 3> plain_fields{"op", "label", "stream"};
constexpr std::array<Name, 3> raise_fields{"op", "error", "label"};
constexpr std::array<Name, 4> new_group_fields{"op", "name", "ranks", "label"};
constexpr std::array<Name, 3> group_fields{"op", "group", "label"};
constexpr std::array<Name, 4> split_fields{"op", "group", "name", "label"};
constexpr std::array<Name, 4> store_set_fields{"op", "key", "value", "label"};
constexpr std::array<Name, 4> store_get_fields{"op", "key", "want", "label"};
constexpr std::array<Name, 3> choice_fields{"op", "options", "label"};
constexpr std::array<Name, 3> parallel_fields{"op", "threads", "label"};

// The arguments that keep their values, and their names in scenarios.
constexpr std::array<HangWord, 16> renamed{{{"tensor", "tensor"},
                                            {"numel", "numel"},
                                            {"dtype", "dtype"},
                                            {"reduce", "reduce_op"},
                                            {"value", "value"},
                                            {"device", "device"},
                                            {"in_splits", "input_split_sizes"},
                                            {"out_splits", "output_split_sizes"},
                                            {"src", "src"},
                                            {"dst", "dst"},
                                            {"tag", "tag"},
                                            {"group", "group"},
                                            {"async", "async_op"},
                                            {"handle", "as"},
                                            {"stream", "stream"},
                                            {"label", "label"}}};

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

std::span<const HangOps::Rule> HangOps::rules() {
  static constexpr std::array<Rule, 33> rows{{
      {"all_reduce", "all_reduce", &HangOps::collective, collective_fields},
      {"all_gather", "all_gather", &HangOps::collective, collective_fields},
      {"reduce_scatter", "reduce_scatter", &HangOps::collective, collective_fields},
      {"broadcast", "broadcast", &HangOps::collective, collective_fields},
      {"reduce", "reduce", &HangOps::collective, collective_fields},
      {"gather", "gather", &HangOps::collective, collective_fields},
      {"scatter", "scatter", &HangOps::collective, collective_fields},
      {"all_to_all", "all_to_all_single", &HangOps::collective, splits_fields},
      {"barrier", "barrier", &HangOps::collective, collective_fields},
      {"send", "send", &HangOps::collective, message_fields},
      {"recv", "recv", &HangOps::collective, message_fields},
      {"isend", "isend", &HangOps::collective, message_fields},
      {"irecv", "irecv", &HangOps::collective, message_fields},
      {"batch_p2p", "batch_isend_irecv", &HangOps::batch, batch_fields},
      {"wait", "wait", &HangOps::simple, handle_fields, "handle"},
      {"compute", "compute", &HangOps::compute, compute_fields},
      {"device_sync", "synchronize", &HangOps::simple, plain_fields},
      {"set_device", "set_device", &HangOps::simple, device_fields, "device"},
      {"set", "fill", &HangOps::set, tensor_fields},
      {"add", "add", &HangOps::with_value, tensor_fields, "tensor"},
      {"read", "read", &HangOps::simple, tensor_fields, "tensor"},
      {"write", "write", &HangOps::simple, tensor_fields, "tensor"},
      {"free", "free", &HangOps::simple, tensor_fields, "tensor"},
      {"check", "check", &HangOps::with_value, tensor_fields, "tensor"},
      {"exit", "exit", &HangOps::simple, plain_fields},
      {"raise", "raise", &HangOps::raise, raise_fields},
      {"new_group", "new_group", &HangOps::about_group, new_group_fields},
      {"comm_split", "split_group", &HangOps::about_group, split_fields},
      {"destroy_group", "destroy_process_group", &HangOps::about_group, group_fields},
      {"store_set", "store_set", &HangOps::about_key, store_set_fields, "key"},
      {"store_get", "store_get", &HangOps::about_key, store_get_fields, "key"},
      {"choice", "choice", &HangOps::branches, choice_fields, "options"},
      {"parallel", "parallel", &HangOps::branches, parallel_fields, "threads"},
  }};
  return rows;
}

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
  const auto rule = std::ranges::find(rules(), name, &Rule::op);
  if (rule == rules().end()) {
    read_.error(op,
                name.empty() ? std::string("an op is an object with \"op\" or \"repeat\"")
                             : fmt::format("unknown op \"{}\"", name),
                suggest_from(name, rules(), &Rule::op));
    return;
  }
  for (Json field : op.children()) {
    if (std::ranges::find(rule->fields, field.key()) == rule->fields.end()) {
      read_.diagnostics().error_at_key(field, fmt::format("\"{}\" has no field \"{}\"", name, field.key()),
                                       suggest(field.key(), rule->fields));
    }
  }
  (this->*rule->translate)(op, *rule, into);
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

// A statement without arguments.
void HangOps::simple(const Json& op, const Rule& rule, OrderedJson& into) {
  const OrderedJson value = rule.subject.empty() ? OrderedJson(true) : read_.required(op, rule.subject);
  into.push_back({{std::string(rule.statement), value}});
}

void HangOps::with_value(const Json& op, const Rule& rule, OrderedJson& into) {
  simple(op, rule, into);
  into.back()["value"] = read_.required(op, "value");
}

void HangOps::raise(const Json& op, const Rule& rule, OrderedJson& into) {
  const auto text = op.find("error");
  into.push_back({{std::string(rule.statement), text ? read_.scalar(*text) : OrderedJson("failed")}});
}

void HangOps::branches(const Json& op, const Rule& rule, OrderedJson& into) {
  OrderedJson lists = OrderedJson::array();
  if (const auto given = op.find(rule.subject); given && given->is(JsonType::array)) {
    for (Json list : given->children()) {
      lists.push_back(statements(list));
    }
  } else {
    read_.error(op, fmt::format("\"{}\" needs a list \"{}\"", rule.statement, rule.subject));
  }
  into.push_back({{std::string(rule.statement), lists}});
}

// Translates everything that a call, a message, or a barrier is given.
void HangOps::collective(const Json& op, const Rule& rule, OrderedJson& into) {
  OrderedJson given = arguments(op);
  const auto tensor = op.find("tensor");
  const bool returns_in_place = rule.op == "reduce_scatter" && tensor && !op.find("async");
  const std::string result = returns_in_place ? std::string(tensor->text()) + ".part" : "";
  if (returns_in_place) {
    given["output"] = result;
  }
  if (rule.op == "all_to_all" && !op.find("in_splits") != !op.find("out_splits")) {
    read_.error(op, "\"all_to_all\" needs both in_splits and out_splits, or neither");
  }
  into.push_back({{std::string(rule.statement), given}});
  if (returns_in_place) {
    into.push_back({{"copy", std::string(tensor->text())}, {"from", result}});
  }
}

void HangOps::batch(const Json& op, const Rule& rule, OrderedJson& into) {
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
  OrderedJson statement = {{std::string(rule.statement), messages}};
  if (const auto handle = op.find("handle")) {
    statement["as"] = read_.scalar(*handle);
  }
  copy_label(op, statement);
  into.push_back(statement);
}

// Creates the tensor as the next call needs it.
void HangOps::set(const Json& op, const Rule& rule, OrderedJson& into) {
  OrderedJson statement = {{std::string(rule.statement), read_.required(op, "tensor")},
                           {"value", read_.required(op, "value")}};
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

void HangOps::about_group(const Json& op, const Rule& rule, OrderedJson& into) {
  const std::string key(rule.statement);
  OrderedJson statement = {{key, OrderedJson::object()}};
  const auto group = op.find("group");
  const auto ranks = op.find("ranks");
  if (rule.op == "destroy_group") {
    statement[key] = group ? read_.scalar(*group) : OrderedJson("world");
  } else if (rule.op == "new_group") {
    statement[key] = ranks ? read_.list_of(*ranks) : OrderedJson::object();
  } else if (group && read_.scalar(*group) != "world") {
    statement["group"] = read_.scalar(*group);
  }
  if (const auto made = op.find("name"); made && rule.op != "destroy_group") {
    statement["as"] = read_.scalar(*made);
  }
  copy_label(op, statement);
  into.push_back(statement);
}

void HangOps::about_key(const Json& op, const Rule& rule, OrderedJson& into) {
  OrderedJson statement = {{std::string(rule.statement), read_.required(op, rule.subject)}};
  const char* field = rule.op == "store_set" ? "value" : "want";
  if (const auto value = op.find(field)) {
    const OrderedJson given = read_.scalar(*value);
    statement[field] = given.is_string() ? given : OrderedJson(given.dump());
  } else if (rule.op == "store_set") {
    statement[field] = "1";
  }
  copy_label(op, statement);
  into.push_back(statement);
}

void HangOps::copy_label(const Json& op, OrderedJson& statement) {
  if (const auto label = op.find("label")) {
    statement["label"] = read_.scalar(*label);
  }
}

// In the library, waiting for a key takes none of a rank's own time, but here it does: so the rank computes before the
// wait what it would compute after it.
void HangOps::compute(const Json& op, const Rule& rule, OrderedJson& into) {
  auto at = into.end();
  while (at != into.begin() && std::prev(at)->contains("store_get")) {
    --at;
  }
  into.insert(at, OrderedJson{{std::string(rule.statement), read_.duration_of(op)}});
}

OrderedJson HangOps::arguments(const Json& op) {
  OrderedJson given = OrderedJson::object();
  const Name name = name_of(op);
  for (const HangWord& argument : renamed) {
    if (const auto field = op.find(argument.theirs)) {
      copy_argument(*field, name, std::string(argument.ours), given);
    }
  }
  if (const auto root = op.find("root")) {
    const bool sends = name == "broadcast" || name == "scatter";
    given[sends ? "src" : "dst"] = read_.scalar(*root);
  }
  return given;
}

// Leaves out defaults (world, float32, SUM), and arguments that a barrier does not have.
void HangOps::copy_argument(const Json& field, Name op_name, const std::string& name, OrderedJson& given) {
  const Name key = field.key();
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
