#include "scenarios/program/lowering.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/source.h"
#include "scenarios/json/suggest.h"
#include "sim/torch/torch_traits.h"

namespace rollcall::scenario {
namespace {

bool contains(std::span<const std::string_view> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

Lowering::Lowering(const ScenarioFacts& facts, const SourceText& source, Diagnostics& diagnostics)
    : facts_(facts),
      source_(source),
      diagnostics_(diagnostics),
      program_(std::make_shared<Program>()),
      read_(facts, source, names_, *program_, diagnostics) {
  program_->file = source.name();
  for (const std::string& dimension : facts.mesh) {
    program_->mesh_variables.push_back(names_.define_variable(dimension));
  }
  for (const auto& [name, value] : facts.constants) {
    program_->constants.emplace_back(names_.define_variable(name), value);
  }
}

std::shared_ptr<const Program> Lowering::finish() {
  program_->variables = names_.variables();
  program_->tensor_names = names_.tensors();
  program_->list_names = names_.lists();
  program_->work_names = names_.works();
  program_->object_lists = names_.object_lists();
  return std::move(program_);
}

Block Lowering::lower_program(const Json& list) {
  read_.scope() = {};
  loop_slots_ = &program_loop_slots_;
  return lower_list(list);
}

const std::vector<Lowering::ObjectRule>& Lowering::object_rules() {
  using Keys = std::vector<std::string_view>;
  static const Keys optimizer{
      "kind", "of", "optimizer", "lr", "momentum", "weight_decay", "parameters_as_bucket_view"};
  static const std::vector<ObjectRule> rules{
      {"joinable",
       {"kind", "forward", "main_hook", "post_hook", "join_device", "group", "notify"},
       &Lowering::lower_joinable},
      {"ddp",
       {"kind", "group", "parameters", "buffers", "bucket_cap", "bucket_cap_mb_list", "first_bucket",
        "broadcast_buffers", "forward_sync_buffers", "find_unused_parameters",
        "skip_all_reduce_unused_params", "gradient_as_bucket_view", "static_graph", "comm_hook",
        "forward_time", "backward_time", "tokens"},
       &Lowering::lower_model},
      {"dp",
       {"kind", "parameters", "gpus", "output_device", "batch_size", "input", "activations", "output",
        "optimizer"},
       &Lowering::lower_data_parallel},
      {"fsdp",
       {"kind", "group", "units", "strategy", "replicate_group", "mixed_precision", "forward_time",
        "backward_time", "tokens"},
       &Lowering::lower_sharded},
      {"fully_shard",
       {"kind", "group", "replicate_group", "units", "root", "reshard_after_forward", "mp_policy",
        "forward_prefetch", "backward_prefetch", "reduce_scatter_unused_params", "tokens"},
       &Lowering::lower_fully_sharded},
      {"optimizer", optimizer, &Lowering::lower_optimizer},
      {"zero", optimizer, &Lowering::lower_optimizer},
      {"pipeline",
       {"kind", "group", "schedule", "stages", "microbatches", "input_args", "infer_shapes", "forward",
        "backward", "backward_weight", "unshard", "reshard", "reduce_grad", "defer_pp_recv"},
       &Lowering::lower_pipeline},
      {"tensor_parallel", {"kind", "group", "input_args", "modules"}, &Lowering::lower_parallel_module},
      {"context_parallel",
       {"kind", "group", "input_args", "rotate_method", "load_balance", "causal"},
       &Lowering::lower_ring},
  };
  return rules;
}

void Lowering::lower_object(const Json& object) {
  const ObjectRule& rule = *std::ranges::find(object_rules(), object.find("kind")->text(), &ObjectRule::kind);
  check_object_keys(object, rule);
  const Position position = source_.position(object.offset());
  ObjectSpec spec{.name = std::string(object.key()), .line = position.line, .column = position.column};
  if (contains(rule.keys, "group")) {
    read_.given(object.find("group"), spec.group, &ValueReader::group);
  }
  spec.kind = (this->*rule.lower)(object);
  program_->objects.push_back(std::move(spec));
}

// The schema knows the keys of all kinds; this checks which belong together.
void Lowering::check_object_keys(const Json& object, const ObjectRule& rule) {
  for (Json member : object.children()) {
    if (!contains(rule.keys, member.key())) {
      diagnostics_.error_at_key(member,
                                fmt::format("an object of kind \"{}\" has no \"{}\"; it takes {}", rule.kind,
                                            member.key(), fmt::join(rule.keys, ", ")),
                                suggest(member.key(), rule.keys));
    }
  }
}

ObjectKind Lowering::lower_joinable(const Json& object) {
  const std::string name(object.key());
  JoinableObject joinable{
      .forward = lower_part(object, "forward"),
      .main_hook = lower_part(object, "main_hook", {.in_hook = true}),
      .post_hook = lower_part(object, "post_hook", {.in_hook = true, .in_post_hook = true}),
      .forward_scope = name + ".forward",
      .main_hook_scope = name + ".main_hook",
      .post_hook_scope = name + ".post_hook"};
  read_.given(object.find("notify"), joinable.notify, &ValueReader::flag);
  read_.given(object.find("join_device"), joinable.join_device, &ValueReader::device);
  return joinable;
}

Block Lowering::lower_part(const Json& object, std::string_view key, const NameScope& scope) {
  const auto list = object.find(key);
  if (!list) {
    return {here(), here()};
  }
  std::vector<SlotIndex> own_slots;
  read_.scope() = scope;
  loop_slots_ = &own_slots;
  in_object_ = true;
  const Block block = lower_list(*list);
  in_object_ = false;
  return block;
}

Block Lowering::lower_list(const Json& list) {
  const Address begin = here();
  lower_statements(list);
  return {begin, here()};
}

void Lowering::lower_statements(const Json& list) {
  if (!list.is(JsonType::array)) {
    read_.error(list, fmt::format("expected a list of statements, found {}", to_phrase(list.type())));
    return;
  }
  for (Json node : list.children()) {
    lower_statement(node);
  }
}

void Lowering::lower_statement(const Json& node) {
  const auto statement = Statement::recognize(node);
  if (!statement) {
    report_unrecognized(node);
    return;
  }
  check_arguments(*statement);
  const StatementRule& rule = statement->rule();
  if (in_thread_ && rule.blocks_rank) {
    read_.error(node, fmt::format("\"{}\" inside \"parallel\" is not supported by this version", rule.key));
    return;
  }
  given_site_ = read_site(*statement);
  check_release(*statement);
  (this->*rule.lower)(*statement);
  given_site_ = {};
}

void Lowering::check_release(const Statement& statement) {
  const StatementRule& rule = statement.rule();
  if (facts_.torch >= rule.since) {
    return;
  }
  const std::string_view older = rule.op && !rule.functional ? to_string(*rule.op) : rule.key;
  read_.error(statement.node(),
              fmt::format("torch.distributed of PyTorch {} has no {}, which came with {}{}",
                          traits_of(facts_.torch).name, rule.key, traits_of(rule.since).name,
                          older == rule.key ? "" : fmt::format("; there it is {}", older)));
}

// No key of the object names a statement. The first one that is nearly a statement's name was
// probably meant as one.
void Lowering::report_unrecognized(const Json& node) {
  if (!node.is(JsonType::object)) {
    read_.error(node, fmt::format("a statement is an object such as {{\"barrier\": {{}}}}, not {}",
                                  to_phrase(node.type())));
    return;
  }
  for (Json member : node.children()) {
    const std::string_view meant = suggest_from(member.key(), statement_rules(), &StatementRule::key);
    if (!meant.empty()) {
      diagnostics_.error(member.key_offset(), node.pointer(),
                         fmt::format("unknown statement \"{}\"", member.key()), meant);
      return;
    }
  }
  const auto first = node.children().begin();
  read_.error(node, first == node.children().end() ? std::string("this statement is empty")
                                                   : fmt::format("unknown statement \"{}\"", (*first).key()));
}

void Lowering::check_arguments(const Statement& statement) {
  for (Json member : statement.node().children()) {
    if (!(member == statement.head())) {
      check_argument(statement, member);
    }
  }
  if (!statement.has_object()) {
    return;
  }
  for (Json member : statement.head().children()) {
    check_argument(statement, member);
    if (const auto beside = statement.node().find(member.key())) {
      diagnostics_.error_at_key(*beside, fmt::format("\"{}\" is given twice, inside \"{}\" and next to it",
                                                     member.key(), statement.rule().key));
    }
  }
}

void Lowering::check_argument(const Statement& statement, const Json& member) {
  const StatementRule& rule = statement.rule();
  const auto report = [&](std::string message, std::string_view suggestion = {}) {
    diagnostics_.error_at_key(member, std::move(message), suggestion);
  };
  if (contains(rule.arguments, member.key())) {
    if (member.key() == rule.subject && !statement.has_object()) {
      report(fmt::format("\"{}\" is already given as the value of \"{}\"", member.key(), rule.key));
    }
  } else if (find_statement_rule(member.key()) != nullptr) {
    report(fmt::format("\"{}\" and \"{}\" are two statements; put each in its own object", rule.key,
                       member.key()));
  } else if (is_planned_argument(member.key())) {
    report(fmt::format("the argument \"{}\" is not supported by this version", member.key()));
  } else {
    report(fmt::format(
               "\"{}\" has no argument \"{}\"{}", rule.key, member.key(),
               rule.arguments.empty() ? "" : fmt::format("; it takes {}", fmt::join(rule.arguments, ", "))),
           suggest(member.key(), rule.arguments));
  }
}

std::optional<Json> Lowering::require(const Statement& statement, std::string_view argument) {
  const auto found = statement.find(argument);
  if (!found) {
    read_.error(statement.node(), fmt::format("\"{}\" needs \"{}\"", statement.rule().key, argument));
  }
  return found;
}

void Lowering::require_true(const Statement& statement) {
  if (!statement.head().is(JsonType::boolean) || !statement.head().boolean()) {
    read_.error(statement.head(), fmt::format("write {{\"{}\": true}}", statement.rule().key));
  }
}

void Lowering::emit(const Json& node, Action action) {
  if (given_site_.file != none) {
    program_->code.push_back({std::move(action), given_site_.line, 0, given_site_.file});
    return;
  }
  const Position position = source_.position(node.offset());
  program_->code.push_back({std::move(action), position.line, position.column});
}

// "train.py:61".
Lowering::GivenSite Lowering::read_site(const Statement& statement) {
  const auto node = statement.find("site");
  if (!node || !contains(statement.rule().arguments, "site")) {
    return {};
  }
  const std::string text(read_.string(*node, "a file and a line"));
  const std::size_t colon = text.rfind(':');
  GivenSite site;
  const char* end = text.data() + text.size();
  const bool has_line = colon != std::string::npos && colon > 0 &&
                        std::from_chars(text.data() + colon + 1, end, site.line).ptr == end && site.line > 0;
  if (!has_line) {
    read_.error(*node, "expected a file and a line, such as \"train.py:61\"");
    return {};
  }
  site.file = read_.intern(text.substr(0, colon));
  return site;
}

}  // namespace rollcall::scenario
