// ValueReader, the part about expressions and texts with holes: the meaning of their names.

#include <algorithm>

#include <fmt/core.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/source.h"
#include "scenarios/json/suggest.h"
#include "scenarios/program/value_reader.h"

namespace rollcall::scenario {
namespace {

NameLookup refuse(std::string message, std::string_view suggestion = {}) {
  return {{}, {0, std::move(message), std::string(suggestion)}};
}

bool is_view_of(std::string_view whole, std::string_view part) {
  const std::less_equal<const char*> no_later;
  return no_later(whole.data(), part.data()) &&
         no_later(part.data() + part.size(), whole.data() + whole.size());
}

}  // namespace

// `position` counts from the string's first character. If escapes have shifted positions, the error
// points to the whole string.
void ValueReader::error_inside(const Json& value, std::size_t position, std::string message,
                               std::string_view suggestion) {
  const bool is_plain = is_view_of(source_.text(), value.text());
  diagnostics_.error(value.offset() + (is_plain ? 1 + position : 0), value.pointer(), std::move(message),
                     suggestion);
}

Operand ValueReader::expression(const Json& value, std::string_view text, std::size_t begin) {
  try {
    Expression compiled = compile_expression(text, [this](std::string_view name) { return look_up(name); });
    if (const auto constant = compiled.constant()) {
      return Operand::of(*constant);
    }
    return Operand::computed(add_entry(program_.expressions, std::move(compiled)));
  } catch (const ExpressionError& problem) {
    error_inside(value, begin + problem.offset, problem.message, problem.suggestion);
    return Operand::of(0);
  }
}

NameLookup ValueReader::look_up(std::string_view name) {
  for (auto loop = scope_.loops.rbegin(); loop != scope_.loops.rend(); ++loop) {
    if (loop->first == name) {
      return {loop->second, {}};
    }
  }
  if (is_reserved_name(name)) {
    return look_up_builtin(name);
  }
  if (name.starts_with("kwargs.")) {
    return look_up_kwarg(name);
  }
  const auto found = names_.find(name);
  if (!found) {
    return unknown_name(name);
  }
  if (found->kind == Name::Kind::objects) {
    return refuse(fmt::format("\"{}\" is a list of objects; it can only be printed", name));
  }
  if (found->kind != Name::Kind::variable) {
    return refuse(fmt::format("\"{}\" is a tensor; read it with {{\"item\": \"{}\", \"as\": \"…\"}} first",
                              name, name));
  }
  return {found->slot, {}};
}

NameLookup ValueReader::look_up_builtin(std::string_view name) const {
  if (name == "rank") {
    return {builtin::rank, {}};
  }
  if (name == "local_rank") {
    return {builtin::local_rank, {}};
  }
  if (name == "world_size") {
    return {builtin::world_size, {}};
  }
  if (name == "is_last_joiner") {
    return scope_.in_post_hook ? NameLookup{builtin::is_last_joiner, {}}
                               : refuse("is_last_joiner is only available in a post_hook");
  }
  if (name == "peer") {
    return scope_.takes_list
               ? NameLookup{builtin::peer, {}}
               : refuse("peer is only available in the value of scatter, reduce_scatter and all_to_all");
  }
  if (name == "kwargs") {
    return refuse("kwargs is not a number; write kwargs.NAME for one of them");
  }
  return refuse(fmt::format("\"{}\" is text; it can only be printed, in an \"except\" block", name));
}

NameLookup ValueReader::look_up_kwarg(std::string_view name) {
  if (!scope_.in_hook) {
    return refuse("keyword arguments are only available in main_hook and post_hook");
  }
  const std::string_view key = name.substr(name.find('.') + 1);
  for (const auto& [known, slot] : program_.kwargs) {
    if (known == key) {
      return {slot, {}};
    }
  }
  const SlotIndex slot = names_.add_variable(std::string(name));
  program_.kwargs.emplace_back(key, slot);
  return {slot, {}};
}

NameLookup ValueReader::unknown_name(std::string_view name) const {
  std::vector<std::string_view> known{"rank", "local_rank", "world_size", "is_last_joiner", "true", "false"};
  for (const auto& [loop, slot] : scope_.loops) {
    known.push_back(loop);
  }
  std::string_view near = suggest(name, known);
  for (Name::Kind kind : {Name::Kind::variable, Name::Kind::tensor, Name::Kind::list}) {
    near = near.empty() ? names_.suggest_like(name, kind) : near;
  }
  return refuse(fmt::format("unknown name \"{}\"", name), near);
}

TableIndex ValueReader::text(const Json& value) {
  Text text;
  std::string literal;
  const auto flush = [&] {
    if (!literal.empty()) {
      text.push_back({TextPiece::Literal{intern(literal)}});
      literal.clear();
    }
  };
  const std::string_view whole = value.is(JsonType::string) ? value.text() : string(value, "a text");
  for (std::size_t at = 0; at < whole.size(); ++at) {
    const char c = whole[at];
    if (c != '{' && c != '}') {
      literal += c;
    } else if (whole.substr(at + 1, 1) == std::string_view(&c, 1)) {
      literal += c;  // {{ and }} are literal braces
      ++at;
    } else {
      const std::size_t close = whole.find('}', at);
      if (c == '}' || close == std::string_view::npos) {
        error_inside(value, at, fmt::format("a single '{}'; write a brace twice to print it", c));
        break;
      }
      flush();
      hole(text, value, whole.substr(at + 1, close - at - 1), at + 1);
      at = close;
    }
  }
  flush();
  return add_entry(program_.texts, std::move(text));
}

constexpr std::string_view repr_suffix = "!r";

// The text between braces: a tensor, the caught error, or an expression.
void ValueReader::hole(Text& text, const Json& value, std::string_view inside, std::size_t begin) {
  const bool is_repr = inside.ends_with(repr_suffix);
  if (scope_.handler != none && inside == "error") {
    text.push_back({TextPiece::ErrorMessage{scope_.handler}});
  } else if (scope_.handler != none && inside == "error_type") {
    text.push_back({TextPiece::ErrorType{scope_.handler}});
  } else if (const auto tensor =
                 find_tensor(inside.substr(0, inside.size() - (is_repr ? repr_suffix.size() : 0)))) {
    text.push_back({TextPiece::Elements{*tensor, is_repr}});
  } else if (const auto name = names_.find(inside); name && name->kind == Name::Kind::objects) {
    text.push_back({TextPiece::Objects{name->slot}});
  } else {
    const Operand operand = expression(value, inside, begin);
    if (operand.kind == Operand::Kind::integer) {
      text.push_back({TextPiece::Literal{intern(std::to_string(operand.integer))}});
    } else {
      text.push_back({TextPiece::Number{operand.expression}});
    }
  }
}

}  // namespace rollcall::scenario
