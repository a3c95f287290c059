#include "scenarios/program/statements.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <vector>

#include "scenarios/program/lowering.h"

namespace rollcall::scenario {
namespace {

using ArgumentName = std::string_view;

using Words = std::vector<ArgumentName>;

template <typename Words>
bool contains(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

const Words tensor_arguments{"tensor", "numel", "shape", "dtype", "value", "device"};
const Words place_arguments{"group", "label", "site"};
const Words async_arguments{"stream", "async_op", "as"};

Words join(std::initializer_list<Words> parts) {
  Words all;
  for (const Words& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// The rule of a collective under one of its names, from its row.
StatementRule rule_of(const OpRow& row, std::string_view name) {
  Words arguments = join({tensor_arguments, place_arguments, async_arguments});
  const auto add_if = [&](bool takes, const Words& names) {
    arguments = takes ? join({arguments, names}) : arguments;
  };
  add_if(has_root(row.kind), {root_argument(row.kind)});
  add_if(!works_in_place(row.kind) && row.given != Tensors::per_member_on_root, {"output"});
  add_if(row.sizes == Sizes::exchanged && row.given == Tensors::one,
         {"input_split_sizes", "output_split_sizes"});
  add_if(row.reduces, {"reduce_op", "factor"});
  return {.key = name,
          .subject = "tensor",
          .arguments = arguments,
          .declares = Declares::call,
          .since = function_since(name),
          .op = row.kind};
}

// torch.distributed._functional_collectives, as programs import it.
struct FunctionalName {
  ArgumentName name;
  OpKind kind;
};
constexpr std::array<FunctionalName, 5> functional_names{{
    {"funcol.all_reduce", OpKind::all_reduce},
    {"funcol.broadcast", OpKind::broadcast},
    {"funcol.all_gather_tensor", OpKind::all_gather_into_tensor},
    {"funcol.reduce_scatter_tensor", OpKind::reduce_scatter_tensor},
    {"funcol.all_to_all_single", OpKind::all_to_all_single},
}};

// The collective without the arguments that functional ones lack; their result is always another
// tensor.
StatementRule functional_rule(const FunctionalName& functional) {
  StatementRule rule = rule_of(row_of(functional.kind), functional.name);
  std::erase_if(rule.arguments, [](ArgumentName name) {
    return name == "async_op" || name == "as" || name == "factor" || name == "output";
  });
  rule.arguments.emplace_back("output");
  rule.blocks_rank = true;
  rule.since = TorchRelease::v2_6;
  rule.functional = true;
  return rule;
}

std::vector<StatementRule> collective_rules() {
  std::vector<StatementRule> rules;
  for (const OpRow& row : op_rows) {
    const bool is_statement = row.given != Tensors::none && row.given != Tensors::several;
    if (row.family == Family::collective && is_statement) {
      rules.push_back(rule_of(row, row.name));
    }
  }
  for (const OpAlias& alias : op_aliases) {
    rules.push_back(rule_of(row_of(alias.kind), alias.name));
  }
  for (const FunctionalName& functional : functional_names) {
    rules.push_back(functional_rule(functional));
  }
  return rules;
}

// Arguments of the format that no part of this version can run yet.
constexpr std::array<ArgumentName, 2> planned_arguments{"timeout", "split_sizes"};

}  // namespace

std::vector<StatementRule> Lowering::make_statement_rules() {
  using enum Declares;
  constexpr bool blocks = true;
  constexpr TorchRelease v2_6 = TorchRelease::v2_6;
  const Words message = join({tensor_arguments, place_arguments, {"stream"}});
  const Words receive = join({message, {"src", "tag", "as"}});
  const Words checkpoint{"checkpoint_id", "shards", "group", "no_dist", "label", "site"};
  const Words list_from{"objects", "group", "label", "site", "src", "output"};
  const Words list_to{"objects", "group", "label", "site", "dst"};
  const Words object{"object", "group", "label", "site", "output"};
  const Words object_to{"object", "group", "label", "site", "dst", "output"};
  const Words coalesced{"group", "async_ops", "as", "label", "site"};
  const Words kernel{"time", "flops", "bytes", "dtype", "kind", "name", "stream", "jitter"};
  const Words join_arguments{"do", "throw_on_early_termination", "enable", "kwargs"};
  const Words clip{"max_norm", "norm_type"};
  const Words new_group{"ranks", "as", "timeout", "backend", "use_local_synchronization", "label", "site"};
  const Words subgroups{"group_size", "as", "timeout", "label", "site"};
  const Words mesh_arguments{"mesh_shape", "mesh_dim_names", "flatten", "label", "site"};
  const Words split{"split_ranks", "group", "as", "timeout", "label", "site"};
  const Words destroyed{"group", "label", "site"};
  const Words monitored{"group", "label", "site", "timeout", "wait_all_ranks"};
  const Words get{"key", "want", "as", "timeout", "label", "site"};
  const Words compare_set{"key", "expected_value", "desired_value", "as", "label", "site"};
  std::vector<StatementRule> rules = collective_rules();
  rules.push_back({"barrier", {}, "", join({place_arguments, async_arguments, {"device"}}), call});
  rules.back().op = OpKind::barrier;
  for (StatementRule& rule : rules) {
    rule.lower = &Lowering::lower_collective;
  }
  const std::vector<StatementRule> others{
      {"send", &Lowering::lower_message, "tensor", join({message, {"dst", "tag"}}), call},
      {"recv", &Lowering::lower_message, "tensor", receive, call},
      {"isend", &Lowering::lower_message, "tensor", join({message, {"dst", "tag", "as"}}), call},
      {"irecv", &Lowering::lower_message, "tensor", receive, call},
      {"batch_isend_irecv", &Lowering::lower_batch, "messages", {"as", "label", "site", "stream"}, calls},
      {"_coalescing_manager", &Lowering::lower_coalesced, "calls", coalesced, calls, blocks, v2_6},
      {"dcp.save", &Lowering::lower_checkpoint, "state_dict", checkpoint, nothing, blocks, v2_6},
      {"dcp.load", &Lowering::lower_checkpoint, "state_dict", checkpoint, nothing, blocks, v2_6},
      {"all_gather_object", &Lowering::lower_objects, "", object, objects, blocks},
      {"broadcast_object_list", &Lowering::lower_objects, "", list_from, objects, blocks},
      {"gather_object", &Lowering::lower_objects, "", object_to, objects, blocks},
      {"scatter_object_list", &Lowering::lower_objects, "", list_from, objects, blocks},
      {"send_object_list", &Lowering::lower_objects, "", list_to, objects, blocks, v2_6},
      {"recv_object_list", &Lowering::lower_objects, "", list_from, objects, blocks, v2_6},
      {"wait", &Lowering::lower_wait, "work", {"timeout", "stream"}},
      {"drop", &Lowering::lower_drop, "work"},
      {"synchronize", &Lowering::lower_synchronize},
      {"compute", &Lowering::lower_compute, "duration", {"jitter"}},
      {"kernel", &Lowering::lower_kernel, "time", kernel},
      {"record_event", &Lowering::lower_event, "event", {"stream"}},
      {"wait_event", &Lowering::lower_event, "event", {"stream"}},
      {"wait_stream", &Lowering::lower_wait_stream, "awaited", {"stream"}},
      {"print", &Lowering::lower_print, "text"},
      {"raise", &Lowering::lower_raise, "message", {"type", "message", "site"}},
      {"exit", &Lowering::lower_exit},
      {"item", &Lowering::lower_item, "tensor", {"as"}, variable},
      {"fill", &Lowering::lower_fill, "tensor", {"value", "numel", "shape", "dtype", "device"}, tensor},
      {"add", &Lowering::lower_add, "target", {"tensor", "value"}, tensor},
      {"copy", &Lowering::lower_copy, "target", {"from"}, tensor},
      {"check", &Lowering::lower_check, "tensor", {"value"}},
      {"read", &Lowering::lower_touch, "tensor", {"site"}},
      {"write", &Lowering::lower_touch, "tensor", {"site"}},
      {"funcol.wait_tensor", &Lowering::lower_touch, "tensor", {}, nothing, blocks, v2_6},
      {"free", &Lowering::lower_touch, "tensor", {"site"}},
      {"set_device", &Lowering::lower_set_device, "device"},
      {"for", &Lowering::lower_for, "variable", {"in", "do"}, in_blocks},
      {"repeat", &Lowering::lower_repeat, "times", {"do"}, in_blocks},
      {"for_each_input", &Lowering::lower_for_each_input, "variable", {"do"}, in_blocks},
      {"if", &Lowering::lower_if, "condition", {"do", "else"}, in_blocks},
      {"break", &Lowering::lower_break},
      {"choice", &Lowering::lower_branches, "branches", {}, in_lists},
      {"parallel", &Lowering::lower_branches, "threads", {}, in_lists, blocks},
      {"join", &Lowering::lower_join, "objects", join_arguments, in_blocks, blocks},
      {"forward", &Lowering::lower_forward, "object", {"do", "grad", "unused"}, in_blocks, blocks},
      {"notify", &Lowering::lower_notify, "object", {}, nothing, blocks},
      {"backward", &Lowering::lower_backward, "object", {"value", "unused"}, nothing, blocks},
      {"step", &Lowering::lower_step, "object", {}, nothing, blocks},
      {"zero_grad", &Lowering::lower_zero_grad, "object", {"set_to_none"}},
      {"state_dict", &Lowering::lower_state_dict, "object"},
      {"consolidate_state_dict", &Lowering::lower_state_dict, "object", {"to"}},
      {"no_sync", &Lowering::lower_no_sync, "object", {"do"}, in_blocks, blocks},
      {"parallelize_module", &Lowering::lower_parallelize, "object", {}, nothing, blocks},
      {"eval", &Lowering::lower_eval, "object", {}, nothing, blocks},
      {"clip_grad_norm", &Lowering::lower_clip_grad_norm, "object", clip, nothing, blocks},
      {"unshard", &Lowering::lower_sharding, "object", {"unit"}, nothing, blocks},
      {"reshard", &Lowering::lower_sharding, "object", {"unit"}, nothing, blocks},
      {"set_requires_gradient_sync", &Lowering::lower_sharding, "object", {"value", "unit"}, nothing, blocks},
      {"set_requires_all_reduce", &Lowering::lower_sharding, "object", {"value", "unit"}, nothing, blocks},
      {"set_reshard_after_forward", &Lowering::lower_sharding, "object", {"value", "unit"}, nothing, blocks},
      {"set_reshard_after_backward", &Lowering::lower_sharding, "object", {"value", "unit"}, nothing, blocks},
      {"set_is_last_backward", &Lowering::lower_sharding, "object", {"value"}, nothing, blocks},
      {"try", &Lowering::lower_try, "", {"do", "except"}, in_blocks, blocks},
      {"new_group", &Lowering::lower_new_group, "ranks", new_group, group, blocks},
      {"new_subgroups", &Lowering::lower_new_subgroups, "group_size", subgroups, group, blocks},
      {"init_device_mesh", &Lowering::lower_init_device_mesh, "mesh_shape", mesh_arguments, mesh, blocks},
      {"split_group", &Lowering::lower_split_group, "split_ranks", split, group, blocks,
       function_since("split_group")},
      {"destroy_process_group", &Lowering::lower_destroy_group, "group", destroyed, nothing, blocks},
      {"monitored_barrier", &Lowering::lower_monitored_barrier, "", monitored, nothing, blocks},
      {"store_set", &Lowering::lower_store, "key", {"key", "value", "label", "site"}, variable, blocks},
      {"store_get", &Lowering::lower_store, "key", get, variable, blocks},
      {"store_add", &Lowering::lower_store, "key", {"key", "value", "as", "label", "site"}, variable, blocks},
      {"store_wait", &Lowering::lower_store, "key", {"key", "timeout", "label", "site"}, variable, blocks},
      {"store_compare_set", &Lowering::lower_store, "key", compare_set, variable, blocks},
      {"store_delete", &Lowering::lower_store, "key", {"key", "label", "site"}, variable, blocks},
  };
  rules.insert(rules.end(), others.begin(), others.end());
  for (StatementRule& rule : rules) {
    rule.takes_object =
        contains(rule.arguments, rule.subject) || (rule.subject.empty() && !rule.arguments.empty());
  }
  return rules;
}

std::span<const StatementRule> statement_rules() {
  static const std::vector<StatementRule> rules = Lowering::make_statement_rules();
  return rules;
}

const StatementRule* find_statement_rule(std::string_view key) {
  for (const StatementRule& rule : statement_rules()) {
    if (rule.key == key) {
      return &rule;
    }
  }
  return nullptr;
}

bool is_planned_argument(std::string_view key) { return contains(planned_arguments, key); }

std::optional<Statement> Statement::recognize(const Json& node) {
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
