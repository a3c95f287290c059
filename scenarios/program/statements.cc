#include "scenarios/program/statements.h"

#include <algorithm>
#include <array>

namespace rollcall::scenario {
namespace {

using Kind = StatementKind;
using Name = std::string_view;

// Arguments of every collective that carries a tensor come first.
constexpr std::array<Name, 14> all_reduce{"tensor",   "numel", "shape",     "dtype", "value",
                                          "device",   "group", "label",     "site",  "stream",
                                          "async_op", "as",    "reduce_op", "factor"};
constexpr std::array<Name, 13> broadcast{"tensor", "numel", "shape",  "dtype",    "value", "device", "group",
                                         "label",  "site",  "stream", "async_op", "as",    "src"};
constexpr std::array<Name, 15> reduce{"tensor",   "numel", "shape", "dtype",     "value",
                                      "device",   "group", "label", "site",      "stream",
                                      "async_op", "as",    "dst",   "reduce_op", "factor"};
constexpr std::array<Name, 13> all_gather{"tensor", "numel", "shape",  "dtype",    "value", "device", "group",
                                          "label",  "site",  "stream", "async_op", "as",    "output"};
constexpr std::array<Name, 14> gather{"tensor", "numel", "shape",  "dtype",    "value", "device", "group",
                                      "label",  "site",  "stream", "async_op", "as",    "dst",    "output"};
constexpr std::array<Name, 15> reduce_scatter{"tensor",   "numel", "shape",  "dtype",     "value",
                                              "device",   "group", "label",  "site",      "stream",
                                              "async_op", "as",    "output", "reduce_op", "factor"};
constexpr std::array<Name, 15> all_to_all_single{"tensor",
                                                 "numel",
                                                 "shape",
                                                 "dtype",
                                                 "value",
                                                 "device",
                                                 "group",
                                                 "label",
                                                 "site",
                                                 "stream",
                                                 "async_op",
                                                 "as",
                                                 "output",
                                                 "input_split_sizes",
                                                 "output_split_sizes"};
constexpr std::array<Name, 1> wait{"timeout"};
constexpr std::array<Name, 7> barrier{"group", "label", "site", "stream", "async_op", "as", "device"};
constexpr std::array<Name, 12> send{"tensor", "numel", "shape", "dtype",  "value", "device",
                                    "group",  "label", "site",  "stream", "dst",   "tag"};
constexpr std::array<Name, 13> isend{"tensor", "numel", "shape",  "dtype", "value", "device", "group",
                                     "label",  "site",  "stream", "dst",   "tag",   "as"};
constexpr std::array<Name, 13> receive{"tensor", "numel", "shape",  "dtype", "value", "device", "group",
                                       "label",  "site",  "stream", "src",   "tag",   "as"};
constexpr std::array<Name, 4> batch{"as", "label", "site", "stream"};
constexpr std::array<Name, 5> all_gather_object{"object", "group", "label", "site", "output"};
constexpr std::array<Name, 6> gather_object{"object", "group", "label", "site", "dst", "output"};
constexpr std::array<Name, 6> object_list{"objects", "group", "label", "site", "src", "output"};
constexpr std::array<Name, 3> raise{"type", "message", "site"};
constexpr std::array<Name, 1> compute{"jitter"};
constexpr std::array<Name, 1> item{"as"};
constexpr std::array<Name, 5> fill{"value", "numel", "shape", "dtype", "device"};
constexpr std::array<Name, 2> add{"tensor", "value"};
constexpr std::array<Name, 1> copy{"from"};
constexpr std::array<Name, 1> check{"value"};
constexpr std::array<Name, 2> for_loop{"in", "do"};
constexpr std::array<Name, 1> block{"do"};
constexpr std::array<Name, 2> conditional{"do", "else"};
constexpr std::array<Name, 4> join{"do", "throw_on_early_termination", "enable", "kwargs"};
constexpr std::array<Name, 2> attempt{"do", "except"};
constexpr std::array<Name, 3> forward{"do", "grad", "unused"};
constexpr std::array<Name, 2> backward{"value", "unused"};
constexpr std::array<Name, 1> zero_grad{"set_to_none"};
constexpr std::array<Name, 1> consolidate{"to"};

constexpr std::array<Name, 5> new_group{"ranks", "as", "timeout", "label", "site"};
constexpr std::array<Name, 5> new_subgroups{"group_size", "as", "timeout", "label", "site"};
constexpr std::array<Name, 6> split_group{"split_ranks", "group", "as", "timeout", "label", "site"};
constexpr std::array<Name, 3> destroy_process_group{"group", "label", "site"};
constexpr std::array<Name, 5> monitored_barrier{"group", "label", "site", "timeout", "wait_all_ranks"};
constexpr std::array<Name, 4> store_set{"key", "value", "label", "site"};
constexpr std::array<Name, 6> store_get{"key", "want", "as", "timeout", "label", "site"};
constexpr std::array<Name, 5> store_add{"key", "value", "as", "label", "site"};
constexpr std::array<Name, 4> store_wait{"key", "timeout", "label", "site"};
constexpr std::array<Name, 6> store_compare_set{"key", "expected_value", "desired_value",
                                                "as",  "label",          "site"};
constexpr std::array<Name, 3> store_delete{"key", "label", "site"};

constexpr std::array<StatementRule, 64> rules{{
    {"all_reduce", Kind::collective, "tensor", true, all_reduce},
    {"broadcast", Kind::collective, "tensor", true, broadcast},
    {"reduce", Kind::collective, "tensor", true, reduce},
    {"all_gather", Kind::collective, "tensor", true, all_gather},
    {"all_gather_into_tensor", Kind::collective, "tensor", true, all_gather},
    {"gather", Kind::collective, "tensor", true, gather},
    {"scatter", Kind::collective, "tensor", true, broadcast},
    {"reduce_scatter", Kind::collective, "tensor", true, reduce_scatter},
    {"reduce_scatter_tensor", Kind::collective, "tensor", true, reduce_scatter},
    {"all_to_all", Kind::collective, "tensor", true, all_gather},
    {"all_to_all_single", Kind::collective, "tensor", true, all_to_all_single},
    {"barrier", Kind::barrier, "", true, barrier},
    {"send", Kind::message, "tensor", true, send},
    {"recv", Kind::message, "tensor", true, receive},
    {"isend", Kind::message, "tensor", true, isend},
    {"irecv", Kind::message, "tensor", true, receive},
    {"batch_isend_irecv", Kind::message_batch, "messages", false, batch},
    {"all_gather_object", Kind::objects, "", true, all_gather_object},
    {"broadcast_object_list", Kind::objects, "", true, object_list},
    {"gather_object", Kind::objects, "", true, gather_object},
    {"scatter_object_list", Kind::objects, "", true, object_list},
    {"wait", Kind::wait, "work", false, wait},
    {"synchronize", Kind::synchronize, "", false, {}},
    {"compute", Kind::compute, "duration", false, compute},
    {"print", Kind::print, "text", false, {}},
    {"raise", Kind::raise, "message", true, raise},
    {"exit", Kind::exit, "", false, {}},
    {"item", Kind::item, "tensor", false, item},
    {"fill", Kind::fill, "tensor", false, fill},
    {"add", Kind::add, "target", false, add},
    {"copy", Kind::copy, "target", false, copy},
    {"check", Kind::check, "tensor", false, check},
    {"read", Kind::touch, "tensor", false, {}},
    {"write", Kind::touch, "tensor", false, {}},
    {"free", Kind::touch, "tensor", false, {}},
    {"set_device", Kind::set_device, "device", false, {}},
    {"for", Kind::for_loop, "variable", false, for_loop},
    {"repeat", Kind::repeat, "times", false, block},
    {"for_each_input", Kind::for_each_input, "variable", false, block},
    {"if", Kind::conditional, "condition", false, conditional},
    {"break", Kind::break_loop, "", false, {}},
    {"choice", Kind::choice, "branches", false, {}},
    {"parallel", Kind::parallel, "threads", false, {}},
    {"join", Kind::join, "objects", false, join},
    {"forward", Kind::forward, "object", false, forward},
    {"notify", Kind::notify, "object", false, {}},
    {"backward", Kind::backward, "object", false, backward},
    {"step", Kind::step, "object", false, {}},
    {"zero_grad", Kind::zero_grad, "object", false, zero_grad},
    {"state_dict", Kind::state_dict, "object", false, {}},
    {"consolidate_state_dict", Kind::state_dict, "object", false, consolidate},
    {"no_sync", Kind::no_sync, "object", false, block},
    {"try", Kind::attempt, "", true, attempt},
    {"new_group", Kind::new_group, "ranks", true, new_group},
    {"new_subgroups", Kind::new_subgroups, "group_size", true, new_subgroups},
    {"split_group", Kind::split_group, "split_ranks", true, split_group},
    {"destroy_process_group", Kind::destroy_process_group, "group", true, destroy_process_group},
    {"monitored_barrier", Kind::monitored_barrier, "", true, monitored_barrier},
    {"store_set", Kind::store, "key", true, store_set},
    {"store_get", Kind::store, "key", true, store_get},
    {"store_add", Kind::store, "key", true, store_add},
    {"store_wait", Kind::store, "key", true, store_wait},
    {"store_compare_set", Kind::store, "key", true, store_compare_set},
    {"store_delete", Kind::store, "key", true, store_delete},
}};

// Arguments of the format that no part of this version can run yet.
constexpr std::array<Name, 2> planned_arguments{"timeout", "split_sizes"};

template <typename Words>
bool contains(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

std::span<const StatementRule> statement_rules() { return rules; }

const StatementRule* find_statement_rule(std::string_view key) {
  for (const StatementRule& rule : statement_rules()) {
    if (rule.key == key) {
      return &rule;
    }
  }
  return nullptr;
}

bool is_planned_argument(std::string_view key) { return contains(planned_arguments, key); }

std::optional<Statement> Statement::recognise(const Json& node) {
  if (!node.is(JsonType::object)) {
    return std::nullopt;
  }
  for (Json member : node.children()) {
    if (const StatementRule* rule = find_statement_rule(member.key())) {
      return Statement(node, member, *rule);
    }
  }
  return std::nullopt;
}

std::optional<Json> Statement::find(std::string_view argument) const {
  for (Json member : node_.children()) {
    if (member.key() == argument && !(member == head_)) {
      return member;
    }
  }
  return has_object() ? head_.find(argument) : std::nullopt;
}

std::optional<Json> Statement::subject() const { return has_object() ? head_.find(rule_->subject) : head_; }

}  // namespace rollcall::scenario
