// The interpreter, the part about texts with holes.

#include <cstdint>
#include <string>
#include <variant>

#include <fmt/core.h>

#include "scenarios/run/interpreter.h"
#include "scenarios/run/rank_frame.h"
#include "scenarios/run/tensor_text.h"

namespace rollcall::scenario {
namespace {

// Python's repr of an object: "{'loss': 0.5}", "[1, None]".
struct ObjectText {
  static std::string of(const Object& object) { return std::visit(ObjectText(), object.value()); }

  std::string operator()(std::monostate) const { return "None"; }
  std::string operator()(bool value) const { return value ? "True" : "False"; }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const {
    const std::string text = fmt::format("{}", value);
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
  }
  std::string operator()(const std::string& text) const {
    const bool has_single = text.find('\'') != std::string::npos;
    const char quote = has_single && text.find('"') == std::string::npos ? '"' : '\'';
    std::string result(1, quote);
    for (const char c : text) {
      if (c == quote || c == '\\') {
        result += '\\';
      }
      result += c == '\n' ? std::string("\\n") : std::string(1, c);
    }
    return result + quote;
  }
  std::string operator()(const ObjectList& list) const {
    std::string text = "[";
    for (const Object& element : list) {
      text += (text.size() > 1 ? ", " : "") + of(element);
    }
    return text + "]";
  }
  std::string operator()(const Object::Dict& dict) const {
    std::string text = "{";
    for (const auto& [name, entry] : dict) {
      text += (text.size() > 1 ? ", " : "") + (*this)(name) + ": " + of(entry);
    }
    return text + "}";
  }
};

// Appends one piece of a text.
struct AppendPiece {
  const RankFrame& frame;
  std::string& text;

  void operator()(const TextPiece::Literal& literal) const { text += frame.program().strings[literal.text]; }
  void operator()(const TextPiece::Number& number) const {
    text += std::to_string(frame.evaluate(Operand::computed(number.expression)));
  }
  void operator()(const TextPiece::Elements& elements) const {
    const TensorName& name = elements.tensor;
    text += name.is_list && name.element < 0 ? tensor_text(frame.read_list(name.slot), elements.is_repr)
                                             : tensor_text(frame.read(name), elements.is_repr);
  }
  void operator()(const TextPiece::ErrorMessage& piece) const { text += frame.caught[piece.caught].message; }
  void operator()(const TextPiece::ErrorType& piece) const { text += frame.caught[piece.caught].type; }
  void operator()(const TextPiece::Objects& piece) const { text += ObjectText()(frame.objects[piece.list]); }
};

}  // namespace

std::string compose(const RankFrame& frame, TableIndex index) {
  std::string text;
  for (const TextPiece& piece : frame.program().texts[index]) {
    std::visit(AppendPiece{frame, text}, piece.piece);
  }
  return text;
}

}  // namespace rollcall::scenario
