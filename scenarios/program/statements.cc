#include "scenarios/program/statements.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <vector>

namespace rollcall::scenario {
namespace {

using Kind = StatementKind;
using ArgumentName = std::string_view;

using Words = std::vector<ArgumentName>;

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
  return {name, Kind::collective, "tensor", true, arguments, row.kind, function_since(name)};
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
  rule.since = TorchRelease::v2_6;
  rule.functional = true;
  return rule;
}

std::vector<StatementRule> make_rules() {
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
  const Words message = join({tensor_arguments, place_arguments, {"stream"}});
  const Words receive = join({message, {"src", "tag", "as"}});
  const Words checkpoint{"checkpoint_id", "shards", "group", "no_dist", "label", "site"};
  const Words object_list{"objects", "group", "label", "site", "src", "output"};
  const std::vector<StatementRule> others{
      {"barrier", Kind::barrier, "", true, join({place_arguments, async_arguments, {"device"}}),
       OpKind::barrier},
      {"send", Kind::message, "tensor", true, join({message, {"dst", "tag"}})},
      {"recv", Kind::message, "tensor", true, receive},
      {"isend", Kind::message, "tensor", true, join({message, {"dst", "tag", "as"}})},
      {"irecv", Kind::message, "tensor", true, receive},
      {"batch_isend_irecv", Kind::message_batch, "messages", false, {"as", "label", "site", "stream"}},
      {"_coalescing_manager",
       Kind::coalesced,
       "calls",
       false,
       {"group", "async_ops", "as", "label", "site"},
       std::nullopt,
       TorchRelease::v2_6},
      {"dcp.save", Kind::checkpoint, "state_dict", false, checkpoint, std::nullopt, TorchRelease::v2_6},
      {"dcp.load", Kind::checkpoint, "state_dict", false, checkpoint, std::nullopt, TorchRelease::v2_6},
      {"all_gather_object", Kind::objects, "", true, {"object", "group", "label", "site", "output"}},
      {"broadcast_object_list", Kind::objects, "", true, object_list},
      {"gather_object", Kind::objects, "", true, {"object", "group", "label", "site", "dst", "output"}},
      {"scatter_object_list", Kind::objects, "", true, object_list},
      {"send_object_list",
       Kind::objects,
       "",
       true,
       {"objects", "group", "label", "site", "dst"},
       std::nullopt,
       TorchRelease::v2_6},
      {"recv_object_list", Kind::objects, "", true, object_list, std::nullopt, TorchRelease::v2_6},
      {"wait", Kind::wait, "work", false, {"timeout", "stream"}},
      {"synchronize", Kind::synchronize, "", false},
      {"compute", Kind::compute, "duration", false, {"jitter"}},
      {"kernel",
       Kind::kernel,
       "time",
       true,
       {"time", "flops", "bytes", "dtype", "kind", "name", "stream", "jitter"}},
      {"record_event", Kind::record_event, "event", false, {"stream"}},
      {"wait_event", Kind::wait_event, "event", false, {"stream"}},
      {"wait_stream", Kind::wait_stream, "awaited", false, {"stream"}},
      {"print", Kind::print, "text", false},
      {"raise", Kind::raise, "message", true, {"type", "message", "site"}},
      {"exit", Kind::exit, "", false},
      {"item", Kind::item, "tensor", false, {"as"}},
      {"fill", Kind::fill, "tensor", false, {"value", "numel", "shape", "dtype", "device"}},
      {"add", Kind::add, "target", false, {"tensor", "value"}},
      {"copy", Kind::copy, "target", false, {"from"}},
      {"check", Kind::check, "tensor", false, {"value"}},
      {"read", Kind::touch, "tensor", false, {"site"}},
      {"write", Kind::touch, "tensor", false, {"site"}},
      {"funcol.wait_tensor", Kind::touch, "tensor", false, {}, std::nullopt, TorchRelease::v2_6, true},
      {"free", Kind::touch, "tensor", false, {"site"}},
      {"set_device", Kind::set_device, "device", false},
      {"for", Kind::for_loop, "variable", false, {"in", "do"}},
      {"repeat", Kind::repeat, "times", false, {"do"}},
      {"for_each_input", Kind::for_each_input, "variable", false, {"do"}},
      {"if", Kind::conditional, "condition", false, {"do", "else"}},
      {"break", Kind::break_loop, "", false},
      {"choice", Kind::choice, "branches", false},
      {"parallel", Kind::parallel, "threads", false},
      {"join", Kind::join, "objects", false, {"do", "throw_on_early_termination", "enable", "kwargs"}},
      {"forward", Kind::forward, "object", false, {"do", "grad", "unused"}},
      {"notify", Kind::notify, "object", false},
      {"backward", Kind::backward, "object", false, {"value", "unused"}},
      {"step", Kind::step, "object", false},
      {"zero_grad", Kind::zero_grad, "object", false, {"set_to_none"}},
      {"state_dict", Kind::state_dict, "object", false},
      {"consolidate_state_dict", Kind::state_dict, "object", false, {"to"}},
      {"no_sync", Kind::no_sync, "object", false, {"do"}},
      {"parallelize_module", Kind::parallelize, "object", false},
      {"eval", Kind::eval, "object", false},
      {"clip_grad_norm", Kind::clip_grad_norm, "object", false, {"max_norm", "norm_type"}},
      {"unshard", Kind::sharding, "object", false, {"unit"}},
      {"reshard", Kind::sharding, "object", false, {"unit"}},
      {"set_requires_gradient_sync", Kind::sharding, "object", false, {"value", "unit"}},
      {"set_requires_all_reduce", Kind::sharding, "object", false, {"value", "unit"}},
      {"set_reshard_after_forward", Kind::sharding, "object", false, {"value", "unit"}},
      {"set_reshard_after_backward", Kind::sharding, "object", false, {"value", "unit"}},
      {"set_is_last_backward", Kind::sharding, "object", false, {"value"}},
      {"try", Kind::attempt, "", true, {"do", "except"}},
      {"new_group",
       Kind::new_group,
       "ranks",
       true,
       {"ranks", "as", "timeout", "use_local_synchronization", "label", "site"}},
      {"new_subgroups",
       Kind::new_subgroups,
       "group_size",
       true,
       {"group_size", "as", "timeout", "label", "site"}},
      {"init_device_mesh",
       Kind::init_device_mesh,
       "mesh_shape",
       true,
       {"mesh_shape", "mesh_dim_names", "flatten", "label", "site"}},
      {"split_group",
       Kind::split_group,
       "split_ranks",
       true,
       {"split_ranks", "group", "as", "timeout", "label", "site"},
       std::nullopt,
       function_since("split_group")},
      {"destroy_process_group", Kind::destroy_process_group, "group", true, {"group", "label", "site"}},
      {"monitored_barrier",
       Kind::monitored_barrier,
       "",
       true,
       {"group", "label", "site", "timeout", "wait_all_ranks"}},
      {"store_set", Kind::store, "key", true, {"key", "value", "label", "site"}},
      {"store_get", Kind::store, "key", true, {"key", "want", "as", "timeout", "label", "site"}},
      {"store_add", Kind::store, "key", true, {"key", "value", "as", "label", "site"}},
      {"store_wait", Kind::store, "key", true, {"key", "timeout", "label", "site"}},
      {"store_compare_set",
       Kind::store,
       "key",
       true,
       {"key", "expected_value", "desired_value", "as", "label", "site"}},
      {"store_delete", Kind::store, "key", true, {"key", "label", "site"}},
  };
  rules.insert(rules.end(), others.begin(), others.end());
  return rules;
}

// Arguments of the format that no part of this version can run yet.
constexpr std::array<ArgumentName, 2> planned_arguments{"timeout", "split_sizes"};

template <typename Words>
bool contains(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

std::span<const StatementRule> statement_rules() {
  static const std::vector<StatementRule> rules = make_rules();
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
