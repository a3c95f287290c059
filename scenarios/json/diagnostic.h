#pragma once

// An error in a scenario file, for a person: where, what, and what was probably meant.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rollcall::scenario {

class Json;
class SourceText;

// What a text says, or the error in it. Exactly one of the two.
template <typename Value>
struct Parsed {
  std::optional<Value> value;
  std::string problem;
};

struct Diagnostic {
  std::string file{};        // as the user gave it
  std::uint32_t line = 0;    // from 1; 0: the file as a whole
  std::uint32_t column = 0;  // from 1
  std::string pointer{};     // JSON pointer of the value at fault; empty for the root and for syntax errors
  std::string message{};     // without a full stop
  std::string suggestion{};  // the word that was probably meant; may be empty
  std::string excerpt{};     // the source line and a line with a caret below it; may be empty

  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

// "file:12:7: error: /program/0: unknown statement "al_reduce" (did you mean "all_reduce"?)", then the
// excerpt. No newline at the end.
std::string to_string(const Diagnostic& diagnostic);

// Thrown once per file, with everything that was found.
class InvalidScenario : public std::exception {
 public:
  explicit InvalidScenario(std::vector<Diagnostic> diagnostics);
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  // All diagnostics, as they are to be printed.
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::vector<Diagnostic> diagnostics_;
  std::string text_;
};

// Collects the errors in one file. Throws InvalidScenario on its own when `limit` is reached: a file that is
// wrong in a hundred places is wrong in one way.
class Diagnostics {
 public:
  static constexpr std::size_t limit = 20;

  // `source` is borrowed for the lifetime of the object.
  explicit Diagnostics(const SourceText& source) : source_(source) {}

  // Adds an error at byte `offset` of the source. The same error is not reported twice.
  void error(std::size_t offset, std::string pointer, std::string message, std::string_view suggestion = {});
  // The same at a value, or at the key of a member.
  void error(const Json& value, std::string message, std::string_view suggestion = {});
  void error_at_key(const Json& member, std::string message, std::string_view suggestion = {});

  // The value of a text at `at`. Without one, adds the error.
  template <typename Value>
  std::optional<Value> value_of(const Json& at, Parsed<Value> parsed) {
    if (!parsed.value) {
      error(at, std::move(parsed.problem));
    }
    return std::move(parsed.value);
  }

  bool empty() const { return found_.empty(); }
  std::size_t count() const { return found_.size(); }
  // Throws InvalidScenario, with the errors in file order, unless there are none.
  void throw_if_any();

 private:
  const SourceText& source_;
  std::vector<Diagnostic> found_;
};

}  // namespace rollcall::scenario
