#include "sim/c10d/object.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>

#include "sim/base/error.h"

namespace rollcall {

Object Object::list(ObjectList elements) {
  Object object;
  object.value_ = std::move(elements);
  return object;
}

Object Object::dict(Dict entries) {
  Object object;
  object.value_ = std::move(entries);
  return object;
}

bool operator==(const Object& a, const Object& b) { return a.value_ == b.value_; }

namespace {

// Opcodes of protocol 4, by the names of Lib/pickle.py.
enum Opcode : char {
  proto = '\x80',
  frame = '\x95',
  stop = '.',
  none = 'N',
  new_true = '\x88',
  new_false = '\x89',
  binint1 = 'K',
  binint2 = 'M',
  binint = 'J',
  long1 = '\x8a',
  binfloat = 'G',
  short_binunicode = '\x8c',
  binunicode = 'X',
  empty_list = ']',
  empty_dict = '}',
  memoize = '\x94',
  binget = 'h',
  long_binget = 'j',
  mark = '(',
  append = 'a',
  appends = 'e',
  setitem = 's',
  setitems = 'u',
};

constexpr char protocol = 4;
constexpr std::size_t smallest_frame = 4;     // a shorter one is written bare
constexpr std::size_t frame_max = 64 * 1024;  // a frame ends at the first value beyond; so long a string
                                              // stands outside of frames
constexpr std::size_t batch = 1000;           // elements of a list or dict between two marks

void put_little_endian(std::string& bytes, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    bytes += static_cast<char>(value >> (8 * i));
  }
}

class Pickler {
 public:
  std::string run(const Object& object) {
    save(object);
    frame_ += stop;
    end_frame();
    return std::string{proto, protocol} + bytes_;
  }

 private:
  void save(const Object& object) {
    std::visit([this](const auto& value) { save_value(value); }, object.value());
  }

  void save_value(std::monostate) { put(none); }
  void save_value(bool value) { put(value ? new_true : new_false); }

  void save_value(std::int64_t value) {
    if (value >= 0 && value <= 0xff) {
      put(binint1, static_cast<std::uint64_t>(value), 1);
    } else if (value >= 0 && value <= 0xffff) {
      put(binint2, static_cast<std::uint64_t>(value), 2);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
      put(binint, static_cast<std::uint64_t>(value), 4);
    } else {
      put_long(value);
    }
  }

  // As few bytes of two's complement as hold the number and its sign.
  void put_long(std::int64_t value) {
    std::size_t size = 5;
    while (size < 8 && value >> (8 * size - 1) != 0 && value >> (8 * size - 1) != -1) {
      ++size;
    }
    begin_value();
    frame_ += long1;
    frame_ += static_cast<char>(size);
    put_little_endian(frame_, static_cast<std::uint64_t>(value), size);
  }

  void save_value(double value) {
    begin_value();
    frame_ += binfloat;
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 56; shift >= 0; shift -= 8) {  // big endian, unlike everything else
      frame_ += static_cast<char>(bits >> shift);
    }
  }

  void save_value(const std::string& text) {
    if (const auto known = memo_.find(text); known != memo_.end()) {
      const bool is_small = known->second <= 0xff;
      put(is_small ? binget : long_binget, known->second, is_small ? 1 : 4);
      return;
    }
    const bool is_short = text.size() <= 0xff;
    begin_value();
    std::string head(1, is_short ? short_binunicode : binunicode);
    put_little_endian(head, text.size(), is_short ? 1 : 4);
    if (text.size() >= frame_max) {
      end_frame();
      bytes_ += head + text;
    } else {
      frame_ += head + text;
    }
    memo_.emplace(text, memoized_);
    remember();
  }

  void save_value(const ObjectList& list) {
    put(empty_list);
    remember();
    for (std::size_t first = 0; first < list.size(); first += batch) {
      const std::size_t last = std::min(first + batch, list.size());
      put_batch(last - first, append, appends, [&](std::size_t i) { save(list[first + i]); });
    }
  }

  void save_value(const Object::Dict& dict) {
    put(empty_dict);
    remember();
    for (std::size_t first = 0; first < dict.size(); first += batch) {
      const std::size_t last = std::min(first + batch, dict.size());
      put_batch(last - first, setitem, setitems, [&](std::size_t i) {
        save_value(dict[first + i].first);
        save(dict[first + i].second);
      });
    }
  }

  template <typename Save>
  void put_batch(std::size_t count, Opcode one, Opcode many, Save&& save_element) {
    if (count > 1) {
      frame_ += mark;
    }
    for (std::size_t i = 0; i < count; ++i) {
      save_element(i);
    }
    frame_ += count > 1 ? many : one;
  }

  void remember() {
    frame_ += memoize;
    ++memoized_;
  }

  void put(Opcode opcode, std::uint64_t value = 0, std::size_t size = 0) {
    begin_value();
    frame_ += opcode;
    put_little_endian(frame_, value, size);
  }

  // Values do not straddle frames.
  void begin_value() {
    if (frame_.size() >= frame_max) {
      end_frame();
    }
  }

  void end_frame() {
    if (frame_.size() >= smallest_frame) {
      bytes_ += frame;
      put_little_endian(bytes_, frame_.size(), 8);
    }
    bytes_ += frame_;
    frame_.clear();
  }

  std::string bytes_;
  std::string frame_;
  std::map<std::string, std::uint64_t, std::less<>> memo_;  // of strings; lists and dicts only count
  std::uint64_t memoized_ = 0;
};

[[noreturn]] void refuse(const char* why) { throw Error("_pickle.UnpicklingError", why); }

// The stack machine that a pickle is a program for.
class Unpickler {
 public:
  explicit Unpickler(std::string_view bytes) : bytes_(bytes) {}

  Object run() {
    if (next() != proto || next() != protocol) {
      refuse("invalid load key: pickle protocol 4 is expected");
    }
    for (char code = next(); code != stop; code = next()) {
      execute(code);
    }
    return pop();
  }

 private:
  void execute(char code) {
    switch (code) {
      case frame:  // only says how far one may read ahead
        number(8);
        return;
      case none:
        return push();
      case new_true:
        return push(true);
      case new_false:
        return push(false);
      case binint1:
        return push(static_cast<std::int64_t>(number(1)));
      case binint2:
        return push(static_cast<std::int64_t>(number(2)));
      case binint:
        return push(static_cast<std::int32_t>(number(4)));
      case long1:
        return push(long_integer());
      case binfloat:
        return push(floating());
      case short_binunicode:
        return push(std::string(take(number(1))));
      case binunicode:
        return push(std::string(take(number(4))));
      case empty_list:
        return push_empty<ObjectList>();
      case empty_dict:
        return push_empty<Object::Dict>();
      case memoize:
        memo_.emplace_back(top());
        return;
      case binget:
        return push(remembered(number(1)));
      case long_binget:
        return push(remembered(number(4)));
      case mark:
        marks_.push_back(stack_.size());
        return;
      case append:
        return extend_list(1);
      case appends:
        return extend_list(since_mark());
      case setitem:
        return extend_dict(2);
      case setitems:
        return extend_dict(since_mark());
      default:
        refuse("an opcode that plain values do not need");
    }
  }

  template <typename... Value>
  void push(Value&&... value) {
    stack_.emplace_back(std::forward<Value>(value)...);
  }
  template <typename Container>
  void push_empty() {
    stack_.emplace_back().value().emplace<Container>();
  }

  Object& top() {
    if (stack_.empty()) {
      refuse("unpickling stack underflow");
    }
    return stack_.back();
  }

  Object pop() {
    Object object = std::move(top());
    stack_.pop_back();
    return object;
  }

  // The uppermost `count` objects, in order.
  ObjectList pop_many(std::size_t count) {
    if (count > stack_.size()) {
      refuse("unpickling stack underflow");
    }
    const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
    ObjectList objects(std::make_move_iterator(first), std::make_move_iterator(stack_.end()));
    stack_.erase(first, stack_.end());
    return objects;
  }

  std::size_t since_mark() {
    if (marks_.empty() || marks_.back() > stack_.size()) {
      refuse("could not find MARK");
    }
    const std::size_t count = stack_.size() - marks_.back();
    marks_.pop_back();
    return count;
  }

  void extend_list(std::size_t count) {
    ObjectList elements = pop_many(count);
    auto* list = std::get_if<ObjectList>(&top().value());
    if (list == nullptr) {
      refuse("elements are appended to a value that is not a list");
    }
    std::ranges::move(elements, std::back_inserter(*list));
  }

  void extend_dict(std::size_t count) {
    ObjectList pairs = pop_many(count);
    auto* dict = std::get_if<Object::Dict>(&top().value());
    if (dict == nullptr || count % 2 != 0) {
      refuse("items are set in a value that is not a dict");
    }
    for (std::size_t i = 0; i < count; i += 2) {
      const auto* key = std::get_if<std::string>(&pairs[i].value());
      if (key == nullptr) {
        refuse("a dict whose keys are not strings");
      }
      dict->emplace_back(*key, std::move(pairs[i + 1]));
    }
  }

  const Object& remembered(std::uint64_t index) const {
    if (index >= memo_.size()) {
      refuse("a reference to a value that does not exist");
    }
    return memo_[index];
  }

  std::int64_t long_integer() {
    const std::uint64_t size = number(1);
    if (size == 0 || size > 8) {
      refuse("an integer beyond 64 bits");
    }
    const std::uint64_t unused = 64 - 8 * size;
    return static_cast<std::int64_t>(number(size) << unused) >> unused;  // keeps the sign
  }

  double floating() {
    std::uint64_t bits = 0;
    for (const char byte : take(8)) {
      bits = bits << 8 | static_cast<unsigned char>(byte);
    }
    return std::bit_cast<double>(bits);
  }

  char next() { return take(1).front(); }

  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size()) {
      refuse("pickle data was truncated");
    }
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

  std::uint64_t number(std::uint64_t size) {
    std::uint64_t value = 0;
    std::uint64_t shift = 0;
    for (const char byte : take(size)) {
      value |= std::uint64_t{static_cast<unsigned char>(byte)} << shift;
      shift += 8;
    }
    return value;
  }

  std::string_view bytes_;  // what is left
  ObjectList stack_;
  std::vector<std::size_t> marks_;  // heights of the stack
  ObjectList memo_;
};

}  // namespace

std::string pickle(const Object& object) { return Pickler().run(object); }
Object unpickle(std::string_view bytes) { return Unpickler(bytes).run(); }

}  // namespace rollcall
