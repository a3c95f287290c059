#include "sim/values/pickle.h"

#include <bit>
#include <utility>

#include <fmt/core.h>

namespace rollcall::values {

namespace {

// Python's names for the opcodes.
enum Opcode : unsigned char {
  MARK = '(',
  STOP = '.',
  BINFLOAT = 'G',
  BININT = 'J',
  BININT1 = 'K',
  BININT2 = 'M',
  NONE = 'N',
  BINUNICODE = 'X',
  EMPTY_LIST = ']',
  EMPTY_DICT = '}',
  EMPTY_TUPLE = ')',
  APPEND = 'a',
  APPENDS = 'e',
  BINGET = 'h',
  LONG_BINGET = 'j',
  BINPUT = 'q',
  LONG_BINPUT = 'r',
  SETITEM = 's',
  TUPLE = 't',
  SETITEMS = 'u',
  PROTO = 0x80,
  TUPLE1 = 0x85,
  TUPLE2 = 0x86,
  TUPLE3 = 0x87,
  NEWTRUE = 0x88,
  NEWFALSE = 0x89,
  LONG1 = 0x8a,
  SHORT_BINUNICODE = 0x8c,
  BINUNICODE8 = 0x8d,
  MEMOIZE = 0x94,
  FRAME = 0x95,
};

constexpr unsigned char protocol_min = 2;
constexpr unsigned char protocol_max = 5;

// Writers number their memo from 0 without gaps. An index far beyond what was stored is an attempt to
// make the reader allocate.
constexpr std::size_t memo_gap_max = 1024;

// Opcodes that import or call. The message names them, because their presence means that the file tries to run code.
constexpr std::pair<unsigned char, std::string_view> dangerous[]{
    {'c', "GLOBAL"}, {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},     {'b', "BUILD"},  {'i', "INST"},
    {'o', "OBJ"},    {0x81, "NEWOBJ"},       {0x92, "NEWOBJ_EX"}, {'P', "PERSID"}, {'Q', "BINPERSID"},
    {0x82, "EXT1"},  {0x83, "EXT2"},         {0x84, "EXT4"}};

class Reader {
 public:
  Reader(std::string_view bytes, Arena& arena) : bytes_(bytes), arena_(arena) { stack_.reserve(256); }

  // The loop: one opcode after the other until STOP. Every opcode consumes at least its own byte and
  // pushes at most one value, which bounds both loop and stack.
  Value read() {
    if (take_byte() != PROTO) {
      fail(0, "not a pickle of protocol 2 or later");
    }
    check_protocol();
    while (true) {
      opcode_at_ = at_;
      const unsigned char opcode = take_byte();
      if (opcode == STOP) {
        return result();
      }
      step_or_say_where(opcode);
    }
  }

 private:
  [[noreturn]] static void fail(std::size_t offset, const std::string& message) {
    throw BadFile(offset, message);
  }

  void check_protocol() {
    const unsigned char protocol = take_byte();
    if (protocol < protocol_min || protocol > protocol_max) {
      fail(at_ - 1, fmt::format("pickle protocol {} is not supported (2 to 5 are)", protocol));
    }
  }

  // The arena does not know the offset when it refuses, so this adds the opcode's.
  void step_or_say_where(unsigned char opcode) try { step(opcode); } catch (const BadFile& error) {
    if (error.offset == 0) {
      fail(opcode_at_, error.what());
    }
    throw;
  }

  void step(unsigned char opcode) {
    switch (opcode) {
      case PROTO:
        return check_protocol();
      case FRAME:
        return skip_frame();
      case NONE:
        return push({});
      case NEWTRUE:
        return push(Value::of_boolean(true));
      case NEWFALSE:
        return push(Value::of_boolean(false));
      case BININT:
        return push(Value::of_integer(static_cast<std::int32_t>(take_unsigned(4))));
      case BININT1:
        return push(Value::of_integer(static_cast<std::int64_t>(take_unsigned(1))));
      case BININT2:
        return push(Value::of_integer(static_cast<std::int64_t>(take_unsigned(2))));
      case LONG1:
        return push_long();
      case BINFLOAT:
        return push_float();
      case SHORT_BINUNICODE:
        return push_text(take_unsigned(1));
      case BINUNICODE:
        return push_text(take_unsigned(4));
      case BINUNICODE8:
        return push_text(take_unsigned(8));
      case EMPTY_LIST:
      case EMPTY_TUPLE:
        return push_container(Value::Kind::list);
      case EMPTY_DICT:
        return push_container(Value::Kind::dict);
      case MARK:
        return marks_.push_back(stack_.size());
      case APPEND:
        return extend(Value::Kind::list, floor_of_last(1));
      case APPENDS:
        return extend(Value::Kind::list, take_mark());
      case SETITEM:
        return extend(Value::Kind::dict, floor_of_last(2));
      case SETITEMS:
        return extend(Value::Kind::dict, take_mark());
      case TUPLE:
        return push_tuple(take_mark());
      case TUPLE1:
        return push_tuple(floor_of_last(1));
      case TUPLE2:
        return push_tuple(floor_of_last(2));
      case TUPLE3:
        return push_tuple(floor_of_last(3));
      case BINPUT:
        return memo_put(take_unsigned(1));
      case LONG_BINPUT:
        return memo_put(take_unsigned(4));
      case MEMOIZE:
        return memo_put(memo_stored_);
      case BINGET:
        return memo_get(take_unsigned(1));
      case LONG_BINGET:
        return memo_get(take_unsigned(4));
      default:
        refuse(opcode);
    }
  }

  [[noreturn]] void refuse(unsigned char opcode) const {
    for (const auto& [code, name] : dangerous) {
      if (opcode == code) {
        fail(opcode_at_, fmt::format("opcode {} would run code; the file is rejected", name));
      }
    }
    fail(opcode_at_, fmt::format("opcode 0x{:02x} builds no plain value", opcode));
  }

  Value result() const {
    if (stack_.size() != 1 || !marks_.empty()) {
      fail(opcode_at_,
           fmt::format("the pickle ends with {} values where there should be one", stack_.size()));
    }
    return stack_.front();
  }

  void need(std::uint64_t count) const {
    if (count > bytes_.size() - at_) {
      fail(at_, "the file ends here, in the middle of a value: it is truncated");
    }
  }

  unsigned char take_byte() {
    need(1);
    return static_cast<unsigned char>(bytes_[at_++]);
  }

  // Little-endian.
  std::uint64_t take_unsigned(std::size_t count) {
    need(count);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(bytes_[at_ + i])} << (8 * i);
    }
    at_ += count;
    return value;
  }

  void skip_frame() {
    const std::uint64_t length = take_unsigned(8);
    need(length);  // the frame's content is read as if the frame were not there
  }

  void push(Value value) { stack_.push_back(value); }

  void push_long() {
    const std::uint64_t count = take_unsigned(1);
    if (count > 8) {
      fail(opcode_at_, fmt::format("an integer of {} bytes; no field needs more than 8", count));
    }
    const std::uint64_t value = take_unsigned(count);
    const unsigned unused = static_cast<unsigned>(64 - 8 * count);
    push(Value::of_integer(
        count == 0 ? 0 : static_cast<std::int64_t>(value << unused) >> unused));  // extends the sign
  }

  void push_float() {
    std::uint64_t bits = take_unsigned(8);
    std::uint64_t swapped = 0;  // big-endian in the file
    for (int i = 0; i < 8; ++i, bits >>= 8) {
      swapped = swapped << 8 | (bits & 0xff);
    }
    push(Value::of_real(std::bit_cast<double>(swapped)));
  }

  void push_text(std::uint64_t count) {
    need(count);
    if (count > UINT32_MAX) {
      fail(opcode_at_, "a string of more than 4 GiB");
    }
    push(Value::of_text(bytes_.substr(at_, count)));
    at_ += count;
  }

  void push_container(Value::Kind kind) {
    auto* node = arena_.allocate_array<Node>(1);
    *node = {};
    push(Value::of_node(kind, node));
  }

  // Where the topmost `count` values begin; they must lie above the last mark.
  std::size_t floor_of_last(std::size_t count) const {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() - floor < count) {
      fail(opcode_at_, "the pickle takes more values than it has created");
    }
    return stack_.size() - count;
  }

  std::size_t take_mark() {
    if (marks_.empty()) {
      fail(opcode_at_, "the pickle ends a list that it has not started");
    }
    const std::size_t floor = marks_.back();
    marks_.pop_back();
    return floor;
  }

  // Moves the values from `floor` on into the container below them.
  void extend(Value::Kind kind, std::size_t floor) {
    const std::size_t bottom = marks_.empty() ? 0 : marks_.back();
    if (floor <= bottom || !stack_[floor - 1].is(kind)) {
      fail(opcode_at_, kind == Value::Kind::list ? "items without a list" : "items without a dict");
    }
    const std::size_t count = stack_.size() - floor;
    if (kind == Value::Kind::dict && count % 2 != 0) {
      fail(opcode_at_, "a key without a value");
    }
    append(arena_, *stack_[floor - 1].node, stack_.data() + floor, count);
    stack_.resize(floor);
  }

  void push_tuple(std::size_t floor) {
    auto* node = arena_.allocate_array<Node>(1);
    *node = {};
    append(arena_, *node, stack_.data() + floor, stack_.size() - floor);
    stack_.resize(floor);
    push(Value::of_node(Value::Kind::list, node));
  }

  void memo_put(std::uint64_t index) {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) {
      fail(opcode_at_, "the pickle stores a value that it has not created");
    }
    if (index > memo_stored_ + memo_gap_max) {
      fail(opcode_at_, fmt::format("memo index {} after {} stored values", index, memo_stored_));
    }
    if (index >= memo_.size()) {
      memo_.resize(index + 1);
      is_stored_.resize(index + 1);
    }
    memo_[index] = stack_.back();
    is_stored_[index] = true;
    ++memo_stored_;
  }

  void memo_get(std::uint64_t index) {
    if (index >= memo_.size() || !is_stored_[index]) {
      fail(opcode_at_, fmt::format("the pickle refers to memo {}, which it has not stored", index));
    }
    push(memo_[index]);
  }

  std::string_view bytes_;
  Arena& arena_;
  std::size_t at_ = 0;
  std::size_t opcode_at_ = 0;
  std::vector<Value> stack_;
  std::vector<std::size_t> marks_;  // ascending heights of the stack
  std::vector<Value> memo_;
  std::vector<bool> is_stored_;
  std::size_t memo_stored_ = 0;
};

}  // namespace

bool looks_like_pickle(std::string_view bytes) {
  return bytes.size() >= 2 && static_cast<unsigned char>(bytes[0]) == PROTO &&
         static_cast<unsigned char>(bytes[1]) >= protocol_min &&
         static_cast<unsigned char>(bytes[1]) <= protocol_max;
}

Value read_pickle(std::string_view bytes, Arena& arena) { return Reader(bytes, arena).read(); }

}  // namespace rollcall::values
