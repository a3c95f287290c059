#include "sim/c10d/object.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>

#include "sim/base/error.h"
#include "sim/values/pickle.h"

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
constexpr std::size_t frame_max = 64 * 1024;  // a frame ends at the first value beyond; a string this long
                                              // is written outside of frames
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

  // The fewest bytes of two's complement that hold the number and its sign.
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
    put_batches(list.size(), append, appends, [&](std::size_t i) { save(list[i]); });
  }

  void save_value(const Object::Dict& dict) {
    put(empty_dict);
    remember();
    put_batches(dict.size(), setitem, setitems, [&](std::size_t i) {
      save_value(dict[i].first);
      save(dict[i].second);
    });
  }

  template <typename Save>
  void put_batches(std::size_t count, Opcode one, Opcode many, Save&& save_element) {
    for (std::size_t first = 0; first < count; first += batch) {
      const std::size_t last = std::min(first + batch, count);
      const bool is_one = last - first == 1;
      if (!is_one) {
        frame_ += mark;
      }
      for (std::size_t i = first; i < last; ++i) {
        save_element(i);
      }
      frame_ += is_one ? one : many;
    }
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
  std::map<std::string, std::uint64_t, std::less<>> memo_;  // of strings; lists and dicts are only counted
  std::uint64_t memoized_ = 0;
};

[[noreturn]] void refuse(const std::string& why) { throw Error("_pickle.UnpicklingError", why); }

// No program's data is nested deeper; a list that contains itself is nested without end.
constexpr int nesting_max = 1000;

Object object_of(const values::Value& value, int nesting) {
  using ValueKind = values::Value::Kind;
  if (nesting > nesting_max) {
    refuse("values nested too deep");
  }
  switch (value.kind) {
    case ValueKind::none:
      return {};
    case ValueKind::boolean:
      return value.integer != 0;
    case ValueKind::integer:
      return value.integer;
    case ValueKind::real:
      return value.real;
    case ValueKind::text:
      return std::string(value.as_text());
    case ValueKind::list:
    case ValueKind::dict:
      break;
  }
  const values::Node& node = *value.node;
  if (value.is(ValueKind::list)) {
    ObjectList elements;
    for (std::uint32_t i = 0; i < node.size; ++i) {
      elements.push_back(object_of(node.items[i], nesting + 1));
    }
    return Object::list(std::move(elements));
  }
  Object::Dict entries;
  for (std::uint32_t i = 0; i < node.size; i += 2) {
    if (!node.items[i].is(ValueKind::text)) {
      refuse("a dict whose keys are not strings");
    }
    entries.emplace_back(node.items[i].as_text(), object_of(node.items[i + 1], nesting + 1));
  }
  return Object::dict(std::move(entries));
}

}  // namespace

std::string pickle(const Object& object) { return Pickler().run(object); }

Object unpickle(std::string_view bytes) try {
  values::Arena arena(std::numeric_limits<std::size_t>::max());
  return object_of(values::read_pickle(bytes, arena), 0);
} catch (const values::BadFile& error) {
  refuse(error.what());
}

}  // namespace rollcall
