#include "scenarios/json/json_reader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/json_syntax.h"
#include "scenarios/json/source.h"

namespace rollcall::scenario {

// Receives the parser's events. They carry no positions, but tokens come in order: `at_` walks the
// text behind the parser, from the end of one token over blanks, commas and comments to the next.
// The functions' names and signatures are those of nlohmann's SAX interface.
class JsonTreeBuilder {
 public:
  JsonTreeBuilder(const SourceText& source, Diagnostics& diagnostics)
      : text_(source.text()), diagnostics_(diagnostics) {
    tree_.nodes_.reserve(text_.size() / 16 + 16);  // about what files hold; untouched pages cost nothing
  }

  JsonTree take() { return std::move(tree_); }

  bool null() {
    add(JsonType::null);
    return literal(4);
  }
  bool boolean(bool value) {
    add(JsonType::boolean).integer = value ? 1 : 0;
    return literal(value ? 4 : 5);
  }
  bool number_integer(std::int64_t value) {
    add(JsonType::integer).integer = value;
    return number();
  }
  bool number_unsigned(std::uint64_t value) {
    if (value > static_cast<std::uint64_t>(INT64_MAX)) {
      return huge_integer();
    }
    add(JsonType::integer).integer = static_cast<std::int64_t>(value);
    return number();
  }
  bool number_float(double value, const std::string& token) {
    if (token.find_first_of(".eE") == std::string::npos) {
      return huge_integer();
    }
    add(JsonType::real).real = value;
    return number();
  }
  bool string(std::string& value) {
    JsonNode& node = add(JsonType::string);
    node.text = take_text(value);
    return true;
  }
  bool binary(std::vector<std::uint8_t>&) { return false; }  // not part of JSON

  bool start_object(std::size_t) { return open(JsonType::object); }
  bool start_array(std::size_t) { return open(JsonType::array); }
  bool end_object() {
    report_duplicates(open_.back());
    return close();
  }
  bool end_array() { return close(); }
  bool key(std::string& value) {
    at_ = next_token(text_, at_);
    key_offset_ = static_cast<std::uint32_t>(at_);
    key_ = take_text(value);
    state_ = SyntaxState::after_key;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) {
    const SyntaxContext context{.state = state_, .from = at_, .open = innermost()};
    const SyntaxProblem problem = explain_syntax_error(text_, context, error.what());
    diagnostics_.error(problem.offset, "", problem.message);
    return false;
  }

  // After the last event. Throws InvalidScenario when anything was wrong.
  void finish(const SourceText& source) {
    // Containers still open have no end yet, and never get one in a broken file; the paths down to what
    // is reported here need them.
    for (std::uint32_t container : open_) {
      tree_.nodes_[container].end = static_cast<std::uint32_t>(tree_.nodes_.size());
    }
    for (const std::uint32_t index : huge_integers_) {
      const Json value(tree_, index);
      diagnostics_.error(value.offset(), value.pointer(), "this integer does not fit in 64 bits");
    }
    for (const auto& [again, first] : duplicates_) {
      const Json value(tree_, again);
      const Position before = source.position(tree_.node(first).key_offset);
      diagnostics_.error(
          value.key_offset(), value.pointer(),
          fmt::format("duplicate key \"{}\"; it is already on line {}", value.key(), before.line));
    }
    diagnostics_.throw_if_any();
  }

 private:
  JsonNode& add(JsonType type) {
    at_ = next_token(text_, at_);
    JsonNode& node = tree_.nodes_.emplace_back();
    node.key = std::exchange(key_, {});
    node.key_offset = key_offset_;
    node.offset = static_cast<std::uint32_t>(at_);
    node.end = static_cast<std::uint32_t>(tree_.nodes_.size());
    node.type = type;
    state_ = SyntaxState::after_value;
    return node;
  }

  bool literal(std::size_t length) {
    at_ += length;
    return true;
  }

  // Taking it for a float would lose digits that somebody wrote down.
  bool huge_integer() {
    huge_integers_.push_back(static_cast<std::uint32_t>(tree_.nodes_.size()));
    add(JsonType::real);
    return number();
  }

  bool number() {
    at_ = std::min(text_.find_first_not_of("0123456789+-.eE", at_), text_.size());
    return true;
  }

  // The text of the string token at `at_`: a view of the source, unless escapes make it differ.
  std::string_view take_text(std::string& value) {
    const std::size_t begin = at_ + 1;
    at_ = string_end(text_, at_);
    const std::string_view raw = text_.substr(begin, at_ - 1 - begin);
    if (raw.size() == value.size()) {
      return raw;
    }
    return tree_.unescaped_.emplace_back(std::move(value));
  }

  bool open(JsonType type) {
    const auto index = static_cast<std::uint32_t>(tree_.nodes_.size());
    add(type);
    if (open_.size() >= json_depth_max) {
      diagnostics_.error(at_, "", fmt::format("brackets are nested deeper than {} levels", json_depth_max));
      return false;
    }
    open_.push_back(index);
    state_ = type == JsonType::object ? SyntaxState::object_begun : SyntaxState::array_begun;
    ++at_;
    return true;
  }

  bool close() {
    tree_.nodes_[open_.back()].end = static_cast<std::uint32_t>(tree_.nodes_.size());
    open_.pop_back();
    at_ = next_token(text_, at_) + 1;
    state_ = SyntaxState::after_value;
    return true;
  }

  std::optional<std::size_t> innermost() const {
    return open_.empty() ? std::nullopt : std::optional<std::size_t>(tree_.nodes_[open_.back()].offset);
  }

  // Sorted by name, then place, equal keys are neighbors; the second and later ones are reported.
  void report_duplicates(std::uint32_t object) {
    tree_.nodes_[object].end = static_cast<std::uint32_t>(tree_.nodes_.size());
    members_.clear();
    for (Json member : Json(tree_, object).children()) {
      members_.emplace_back(member.key(), member.index());
    }
    std::sort(members_.begin(), members_.end());
    for (std::size_t i = 1; i < members_.size(); ++i) {
      if (members_[i].first == members_[i - 1].first) {
        duplicates_.push_back({members_[i].second, members_[i - 1].second});
      }
    }
  }

  std::string_view text_;
  Diagnostics& diagnostics_;
  JsonTree tree_;
  std::vector<std::uint32_t> open_;  // indexes of the containers around the next token
  std::vector<std::pair<std::string_view, std::uint32_t>> members_;  // reused by report_duplicates
  std::vector<std::pair<std::uint32_t, std::uint32_t>> duplicates_;  // again, first
  std::vector<std::uint32_t> huge_integers_;
  std::size_t at_ = 0;  // end of the last token seen
  std::string_view key_;
  std::uint32_t key_offset_ = 0;
  SyntaxState state_ = SyntaxState::before_root;
};

JsonTree read_json(const SourceText& source) {
  Diagnostics diagnostics(source);
  JsonTreeBuilder builder(source, diagnostics);
  const std::string_view text = source.text();
  nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &builder,
                            nlohmann::json::input_format_t::json,
                            /*strict=*/true, /*ignore_comments=*/true);
  builder.finish(source);
  return builder.take();
}

}  // namespace rollcall::scenario
