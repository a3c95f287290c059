#pragma once

// Object: a Python value that an object collective carries, and its pickled bytes. Their size is what the collective
// sends, so it is computed, not guessed.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rollcall {

class Object;
using ObjectList = std::vector<Object>;

class Object {
 public:
  using Dict = std::vector<std::pair<std::string, Object>>;  // in order of insertion, as in Python
  using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string, ObjectList, Dict>;

  Object() = default;  // None
  Object(bool value) : value_(value) {}
  Object(std::int64_t value) : value_(value) {}
  Object(std::int32_t value) : value_(std::int64_t{value}) {}
  Object(double value) : value_(value) {}
  Object(std::string value) : value_(std::move(value)) {}
  Object(const char* value) : value_(std::string(value)) {}

  static Object list(ObjectList elements);
  static Object dict(Dict entries);

  const Value& value() const { return value_; }
  Value& value() { return value_; }

  friend bool operator==(const Object& a, const Object& b);

 private:
  Value value_;
};

// pickle.dumps(object), with Python's default protocol 4 (Lib/pickle.py, PEP 3154). Equal strings count as one Python
// object, as a program's constants do; lists and dicts are objects of their own.
std::string pickle(const Object& object);

// The object that `bytes` begin with. Throws UnpicklingError for bytes that are not a pickle of these kinds of values.
Object unpickle(std::string_view bytes);

}  // namespace rollcall
