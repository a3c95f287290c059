#include "scenarios/json/json_reader.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/json_syntax.h"
#include "scenarios/json/source.h"
#include "sim/values/json_builder.h"

namespace rollcall::scenario {

namespace {

using values::Value;

// Receives the parser's events. They carry no positions, but tokens come in order: `at_` follows
// the parser through the text, from the end of one token over blanks, commas, and comments to the
// next. The functions' names and signatures are those of nlohmann's SAX interface.
class JsonReader : values::JsonBuilder {
 public:
  JsonReader(const SourceText& source, values::Arena& arena)
      : JsonBuilder(arena), source_(source), text_(source.text()), diagnostics_(source) {}

  bool null() { return literal({}, 4); }
  bool boolean(bool value) { return literal(Value::of_boolean(value), value ? 4 : 5); }
  bool number_integer(std::int64_t value) { return number(Value::of_integer(value)); }
  bool number_unsigned(std::uint64_t value) {
    return value > static_cast<std::uint64_t>(INT64_MAX)
               ? huge_integer()
               : number(Value::of_integer(static_cast<std::int64_t>(value)));
  }
  bool number_float(double value, const std::string& token) {
    return token.find_first_of(".eE") == std::string::npos ? huge_integer() : number(Value::of_real(value));
  }
  bool string(const std::string& value) { return add_text(value, SyntaxState::after_value); }
  bool key(const std::string& value) { return add_text(value, SyntaxState::after_key); }
  bool binary(const std::vector<std::uint8_t>&) { return false; }  // not part of JSON

  bool start_object(std::size_t) { return begin(Value::Kind::dict, SyntaxState::object_begun); }
  bool start_array(std::size_t) { return begin(Value::Kind::list, SyntaxState::array_begun); }
  bool end_object() {
    note_duplicates(*close().node);
    return end_array_or_object();
  }
  bool end_array() {
    close();
    return end_array_or_object();
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) {
    const std::optional<std::size_t> open =
        depth() == 0 ? std::nullopt : std::optional<std::size_t>(innermost().offset);
    const SyntaxProblem problem =
        explain_syntax_error(text_, {.state = state_, .from = at_, .open = open}, error.what());
    diagnostics_.error(problem.offset, "", problem.message);
    return false;
  }

  // Called after the last event. Throws InvalidScenario if anything was wrong.
  const Value& finish() {
    // The paths to the reported values go through containers that a broken file leaves open.
    while (depth() > 0) {
      if (state_ == SyntaxState::after_key) {
        stack_.pop_back();
        state_ = SyntaxState::after_value;
      }
      close();
    }
    auto* root = arena_.allocate_array<Value>(1);
    *root = this->root();
    report_huge_integers(Json(*root, *root, nullptr));
    for (const Duplicate& duplicate : duplicates_) {
      const Json again(*root, duplicate.again[1], duplicate.again);
      const Position before = source_.position(duplicate.first);
      diagnostics_.error_at_key(
          again, fmt::format("duplicate key \"{}\"; it is already on line {}", again.key(), before.line));
    }
    diagnostics_.throw_if_any();
    return *root;
  }

 private:
  // A key that its object already has.
  struct Duplicate {
    const Value* again;  // the key
    std::size_t first;   // offset of the first one
  };

  // Adds the value of a token that begins at the next position and ends `length` later.
  bool literal(Value value, std::size_t length) {
    at_ = next_token(text_, at_);
    value.offset = static_cast<std::uint32_t>(at_);
    at_ += length;
    state_ = SyntaxState::after_value;
    return push(value);
  }

  bool number(Value value) {
    literal(value, 0);
    at_ = std::min(text_.find_first_not_of("0123456789+-.eE", at_), text_.size());
    return true;
  }

  // Reading it as a float would lose digits.
  bool huge_integer() {
    number(Value::of_real(0));
    huge_integers_.push_back(stack_.back().offset);
    return true;
  }

  // Adds a view of the source, or a copy if escapes make the text differ.
  bool add_text(const std::string& value, SyntaxState state) {
    const std::size_t begin = next_token(text_, at_);
    at_ = string_end(text_, begin);
    const std::string_view raw = text_.substr(begin + 1, at_ - begin - 2);
    Value text = raw.size() == value.size() ? Value::of_text(raw) : copy(value);
    text.offset = static_cast<std::uint32_t>(begin);
    state_ = state;
    return push(text);
  }

  bool begin(Value::Kind kind, SyntaxState state) {
    literal(Value::of_node(kind, nullptr), 0);
    const Value container = stack_.back();
    stack_.pop_back();
    if (depth() >= json_depth_max) {
      diagnostics_.error(at_, "", fmt::format("brackets are nested deeper than {} levels", json_depth_max));
      return false;
    }
    ++at_;
    state_ = state;
    return open(container);
  }

  bool end_array_or_object() {
    at_ = next_token(text_, at_) + 1;
    state_ = SyntaxState::after_value;
    return true;
  }

  // Sorted by name, then position, equal keys are neighbors; the second and later ones are noted.
  void note_duplicates(const values::Node& object) {
    keys_.clear();
    for (std::uint32_t i = 0; i < object.size; i += 2) {
      keys_.emplace_back(object.items[i].as_text(), i);
    }
    std::sort(keys_.begin(), keys_.end());
    for (std::size_t i = 1; i < keys_.size(); ++i) {
      if (keys_[i].first == keys_[i - 1].first) {
        duplicates_.push_back({&object.items[keys_[i].second], object.items[keys_[i - 1].second].offset});
      }
    }
  }

  void report_huge_integers(const Json& value) {
    if (std::ranges::binary_search(huge_integers_, value.offset()) && value.is(JsonType::real)) {
      diagnostics_.error(value, "this integer does not fit in 64 bits");
    }
    if (!huge_integers_.empty()) {
      for (const Json& child : value.children()) {
        report_huge_integers(child);
      }
    }
  }

  const SourceText& source_;
  std::string_view text_;
  Diagnostics diagnostics_;
  std::vector<std::pair<std::string_view, std::uint32_t>> keys_;  // reused by note_duplicates
  std::vector<Duplicate> duplicates_;
  std::vector<std::size_t> huge_integers_;  // their offsets, ascending
  std::size_t at_ = 0;                      // end of the last token seen
  SyntaxState state_ = SyntaxState::before_root;
};

}  // namespace

JsonTree read_json(const SourceText& source) {
  auto arena = std::make_unique<values::Arena>(std::numeric_limits<std::size_t>::max());
  JsonReader reader(source, *arena);
  const std::string_view text = source.text();
  nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &reader,
                            nlohmann::json::input_format_t::json,
                            /*strict=*/true, /*ignore_comments=*/true);
  const Value& root = reader.finish();
  return {std::move(arena), root};
}

}  // namespace rollcall::scenario
