#include "scenarios/program/names.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

#include <fmt/core.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/suggest.h"

namespace rollcall::scenario {
namespace {

// In the order of the slots in program.h.
constexpr std::array<std::string_view, 5> builtins{"rank", "local_rank", "world_size", "is_last_joiner",
                                                   "peer"};
constexpr std::array<std::string_view, 5> keywords{"kwargs", "true", "false", "error", "error_type"};

SlotIndex add_slot(std::vector<std::string>& names, std::string name) {
  names.push_back(std::move(name));
  return static_cast<SlotIndex>(names.size() - 1);
}

}  // namespace

std::string_view to_phrase(Name::Kind kind) {
  switch (kind) {
    case Name::Kind::tensor:
      return "a tensor";
    case Name::Kind::list:
      return "a list of tensors";
    case Name::Kind::variable:
      return "a variable";
    case Name::Kind::objects:
      return "a list of objects";
  }
  return "something else";
}

bool is_reserved_name(std::string_view name) {
  return std::ranges::count(builtins, name) > 0 || std::ranges::count(keywords, name) > 0;
}

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto continues = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '.'; };
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), continues) &&
         !text.starts_with("kwargs.");
}

std::string not_a_name(std::string_view text) {
  return fmt::format(
      "\"{}\" is not a valid name: use letters, digits, _ and dots; it must not begin with a digit", text);
}

Names::Names() : variables_(builtins.begin(), builtins.end()) {}

std::optional<Name> Names::find(std::string_view name) const {
  auto found = names_.find(name);
  return found == names_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<SlotIndex> Names::find_work(std::string_view name) const {
  auto found = works_.find(name);
  return found == works_.end() ? std::nullopt : std::optional(found->second);
}

std::string_view Names::suggest_like(std::string_view word, Name::Kind kind) const {
  const auto is_alike = [kind](const auto& entry) { return entry.second.kind == kind; };
  return suggest_from(word, names_ | std::views::filter(is_alike) | std::views::keys);
}

std::string_view Names::suggest_work(std::string_view word) const {
  return suggest_from(word, works_ | std::views::keys);
}

SlotIndex Names::define_variable(std::string_view name) {
  const SlotIndex slot = add_variable(std::string(name));
  names_.insert_or_assign(name, Name{Name::Kind::variable, slot});
  return slot;
}

SlotIndex Names::add_variable(std::string name) { return add_slot(variables_, std::move(name)); }
SlotIndex Names::add_tensor() { return add_slot(tensors_, {}); }
SlotIndex Names::add_list() { return add_slot(lists_, {}); }

void Names::collect(const Json& list, Diagnostics& diagnostics) {
  if (!list.is(JsonType::array)) {
    return;  // lowering says so
  }
  for (Json node : list.children()) {
    if (const auto statement = Statement::recognize(node)) {
      collect_statement(*statement, diagnostics);
    }
  }
}

void Names::collect_statement(const Statement& statement, Diagnostics& diagnostics) {
  switch (statement.rule().declares) {
    case Declares::nothing:
      return;
    case Declares::calls:
      collect(statement.head(), diagnostics);
      [[fallthrough]];
    case Declares::call:
      return collect_call(statement, diagnostics);
    case Declares::tensor:
      return declare(statement.subject(), Name::Kind::tensor, diagnostics);
    case Declares::variable:
      return declare(statement.find("as"), Name::Kind::variable, diagnostics);
    case Declares::objects:
      return declare(statement.find("output"), Name::Kind::objects, diagnostics);
    case Declares::group:
      if (const auto made = statement.find("as"); made && made->is(JsonType::string)) {
        groups_.insert(made->text());
      }
      return;
    case Declares::mesh:
      return collect_mesh(statement);
    case Declares::in_blocks:
      for (const char* block : {"do", "else", "except"}) {
        if (const auto list = statement.find(block)) {
          collect(*list, diagnostics);
        }
      }
      return;
    case Declares::in_lists:
      for (Json list : statement.head().children()) {
        collect(list, diagnostics);
      }
      return;
  }
}

// Every dimension is a group.
void Names::collect_mesh(const Statement& statement) {
  const auto names = statement.find("mesh_dim_names");
  if (names && names->is(JsonType::array)) {
    for (Json name : names->children()) {
      groups_.insert(name.is(JsonType::string) ? name.text() : std::string_view());
    }
  }
  const auto flattened = statement.find("flatten");
  if (flattened && flattened->is(JsonType::object)) {
    for (Json entry : flattened->children()) {
      groups_.insert(entry.key());
    }
  }
}

// Checks every argument once: this runs for every call of a large file.
void Names::collect_call(const Statement& statement, Diagnostics& diagnostics) {
  bool makes_tensor = false;
  const bool returns_source = statement.rule().key == "recv";
  const std::optional<OpKind> op = statement.rule().op;
  const Name::Kind output = op && fills_list(*op) ? Name::Kind::list : Name::Kind::tensor;
  const auto look_at = [&](const Json& argument) {
    const std::string_view key = argument.key();
    if (key == "output") {
      declare(argument, output, diagnostics);
    } else if (key == "as" && returns_source) {
      declare(argument, Name::Kind::variable, diagnostics);
    } else if (key == "as" && argument.is(JsonType::string)) {
      declare_work(argument.text());
    } else {
      makes_tensor = makes_tensor || key == "numel" || key == "shape" || key == "dtype" || key == "value" ||
                     key == "device";
    }
  };
  for (Json member : statement.node().children()) {
    look_at(member);
  }
  if (statement.has_object()) {
    for (Json member : statement.head().children()) {
      look_at(member);
    }
  }
  if (makes_tensor) {
    declare(statement.subject(), Name::Kind::tensor, diagnostics);
  }
}

void Names::declare_work(std::string_view name) {
  if (works_.try_emplace(name, static_cast<SlotIndex>(work_names_.size())).second) {
    work_names_.emplace_back(name);
  }
}

void Names::declare(const std::optional<Json>& name, Name::Kind kind, Diagnostics& diagnostics) {
  if (!name || !name->is(JsonType::string) || name->text().empty()) {
    return;  // lowering says so
  }
  if (is_reserved_name(name->text())) {
    diagnostics.error(*name, fmt::format("\"{}\" is a reserved name", name->text()));
    return;
  }
  if (!is_name(name->text())) {
    diagnostics.error(*name, not_a_name(name->text()));
    return;
  }
  const auto [entry, is_new] = names_.try_emplace(name->text(), Name{kind, no_slot});
  if (!is_new && entry->second.kind != kind) {
    diagnostics.error(*name, fmt::format("\"{}\" is {} here, but {} elsewhere; use different names",
                                         name->text(), to_phrase(kind), to_phrase(entry->second.kind)));
  }
  if (is_new) {
    entry->second.slot = add_slot(slots_of(kind), std::string(name->text()));
  }
}

std::vector<std::string>& Names::slots_of(Name::Kind kind) {
  switch (kind) {
    case Name::Kind::tensor:
      return tensors_;
    case Name::Kind::list:
      return lists_;
    case Name::Kind::objects:
      return object_lists_;
    case Name::Kind::variable:
      break;
  }
  return variables_;
}

}  // namespace rollcall::scenario
