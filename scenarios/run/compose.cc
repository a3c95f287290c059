// The interpreter, the part about texts with holes.

#include <variant>

#include "scenarios/run/interpreter.h"
#include "scenarios/run/object_text.h"
#include "scenarios/run/rank_frame.h"
#include "scenarios/run/tensor_text.h"

namespace rollcall::scenario {
namespace {

// Appends one piece of a text.
struct AppendPiece {
  const RankFrame& frame;
  std::string& text;

  void operator()(const TextPiece::Literal& literal) const { text += frame.program().strings[literal.text]; }
  void operator()(const TextPiece::Number& number) const {
    text += std::to_string(frame.evaluate(Operand::computed(number.expression)));
  }
  void operator()(const TensorName& name) const {
    text += name.is_list && name.element < 0 ? tensor_text(frame.read_list(name.slot))
                                             : tensor_text(frame.read(name));
  }
  void operator()(const TextPiece::Repr& piece) const {
    const TensorName& name = piece.tensor;
    text += name.is_list && name.element < 0 ? tensor_repr(frame.read_list(name.slot))
                                             : tensor_repr(frame.read(name));
  }
  void operator()(const TextPiece::ErrorMessage& piece) const { text += frame.caught[piece.caught].message; }
  void operator()(const TextPiece::ErrorType& piece) const { text += frame.caught[piece.caught].type; }
  void operator()(const TextPiece::Objects& piece) const {
    text += object_text(Object::list(frame.objects[piece.list]));
  }
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
