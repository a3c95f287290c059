#include "traces/formats/chakra.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <ranges>

#include <protozero/pbf_reader.hpp>

#include "traces/formats/call_recorder.h"
#include "traces/values/value_access.h"

namespace rollcall::traces {

namespace {

namespace node_type {
constexpr std::int64_t send = 5;
constexpr std::int64_t recv = 6;
constexpr std::int64_t collective = 7;
}  // namespace node_type

// Indexed by CollectiveCommType.
constexpr std::array<std::string_view, 10> kinds = {
    "all_reduce", "reduce",         "all_gather",           "gather", "scatter", "broadcast",
    "all_to_all", "reduce_scatter", "reduce_scatter_block", "barrier"};

struct Attribute {
  std::string_view name;
  std::int64_t number = -1;
  std::string_view text;
};

// Bounded because the judge adds and subtracts these numbers.
std::int64_t bounded(std::int64_t number) {
  constexpr std::int64_t number_max = std::int64_t{1} << 62;
  return number < number_max ? std::max<std::int64_t>(number, -1) : -1;
}

// A node, whichever way it was written.
struct ChakraNode {
  std::int64_t type = 0;
  std::int64_t start_us = 0;
  std::int64_t duration_us = 0;
  std::int64_t comm_type = -1;
  std::int64_t comm_size = -1;  // bytes
  std::int64_t source = -1;
  std::int64_t destination = -1;
  std::string_view group;

  void set(const Attribute& attribute) {
    if (attribute.name == "comm_type") {
      comm_type = bounded(attribute.number);
    } else if (attribute.name == "comm_size") {
      comm_size = bounded(attribute.number);
    } else if (attribute.name == "comm_src") {
      source = bounded(attribute.number);
    } else if (attribute.name == "comm_dst") {
      destination = bounded(attribute.number);
    } else if (attribute.name == "pg_name") {
      group = attribute.text;
    }
  }
};

// Adds the call that a communication node stands for. `rank`: whose trace this is.
void add(CallRecorder& calls, const ChakraNode& node, Rank rank) {
  RecordedCall call;
  if (node.type == node_type::collective && node.comm_type >= 0 &&
      static_cast<std::size_t>(node.comm_type) < kinds.size()) {
    call.name = kinds[static_cast<std::size_t>(node.comm_type)];
  } else if (node.type == node_type::send || node.type == node_type::recv) {
    const bool sends = node.type == node_type::send;
    call.name = sends ? "send" : "recv";
    const std::int64_t peer = sends ? node.destination : node.source;
    call.peer = peer >= 0 && peer < ranks_max ? static_cast<Rank>(peer) : -1;
  } else {
    return;
  }
  call.group = calls.group(node.group.empty() ? "0" : node.group, "", {});
  call.numel_in = call.numel_out = node.comm_size;
  call.dtype = "bytes";
  call.created_ns = node.start_us > 0 && node.start_us < INT64_MAX / 2048 ? node.start_us * 1000 : 0;
  call.duration_ms = node.duration_us > 0 ? static_cast<double>(node.duration_us) / 1000 : -1;
  calls.add(call, rank);
}

using protozero::pbf_reader;

// Field numbers, each with the wire type that it must have: a file may claim any other.
constexpr std::uint32_t text_field(std::uint32_t number) {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::length_delimited);
}
constexpr std::uint32_t number_field(std::uint32_t number) {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::varint);
}

std::string_view view_of(protozero::data_view data) { return {data.data(), data.size()}; }

// Reads the members of AttributeProto's oneof that are used.
Attribute read_attribute(pbf_reader message) {
  Attribute attribute;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case text_field(1):
        attribute.name = view_of(message.get_view());
        break;
      case number_field(7):
        attribute.number = message.get_int32();
        break;
      case number_field(9):
        attribute.number = message.get_int64();
        break;
      case number_field(11):
        attribute.number = message.get_uint32();
        break;
      case number_field(13):
        attribute.number = static_cast<std::int64_t>(message.get_uint64());
        break;
      case number_field(15):
        attribute.number = message.get_sint32();
        break;
      case number_field(17):
        attribute.number = message.get_sint64();
        break;
      case text_field(29):
        attribute.text = view_of(message.get_view());
        break;
      default:
        message.skip();
    }
  }
  return attribute;
}

ChakraNode read_node(std::string_view bytes) {
  ChakraNode node;
  pbf_reader message(bytes.data(), bytes.size());
  while (message.next()) {
    switch (message.tag_and_type()) {
      case number_field(3):
        node.type = message.get_enum();
        break;
      case number_field(6):
        node.start_us = static_cast<std::int64_t>(message.get_uint64());
        break;
      case number_field(7):
        node.duration_us = static_cast<std::int64_t>(message.get_uint64());
        break;
      case text_field(10):
        node.set(read_attribute(message.get_message()));
        break;
      default:
        message.skip();
    }
  }
  return node;
}

// Reads consecutive messages, each preceded by its length.
class Messages {
 public:
  explicit Messages(std::string_view bytes) : at_(bytes.data()), begin_(at_), end_(at_ + bytes.size()) {}

  bool is_done() const { return at_ == end_; }
  std::size_t offset() const { return static_cast<std::size_t>(at_ - begin_); }

  // Throws protozero's exceptions.
  std::string_view next() {
    const std::uint64_t size = protozero::decode_varint(&at_, end_);
    if (size > static_cast<std::uint64_t>(end_ - at_)) {
      throw protozero::end_of_buffer_exception();
    }
    const std::string_view message(at_, size);
    at_ += size;
    return message;
  }

 private:
  const char* at_;
  const char* begin_;
  const char* end_;
};

}  // namespace

// GlobalMetadata holds a version text and attributes; a node begins with its id or name.
bool looks_like_chakra(std::string_view bytes) {
  try {
    Messages messages(bytes);
    const std::string_view metadata = messages.next();
    const auto begins_with = [](std::string_view message, std::string_view tags) {
      return message.empty() || tags.find(message.front()) != std::string_view::npos;
    };
    constexpr std::string_view of_metadata = "\x0a\x12";
    constexpr std::string_view of_node = "\x08\x12\x18";
    return !bytes.empty() && begins_with(metadata, of_metadata) && !messages.is_done() &&
           begins_with(messages.next(), of_node);
  } catch (const protozero::exception&) {
    return false;
  }
}

RankRecording decode_chakra(std::string_view bytes, Rank rank) {
  CallRecorder calls;
  Messages messages(bytes);
  std::size_t offset = 0;
  try {
    messages.next();  // GlobalMetadata
    while (!messages.is_done()) {
      offset = messages.offset();
      add(calls, read_node(messages.next()), rank);
    }
  } catch (const protozero::end_of_buffer_exception&) {
    throw BadFile(offset, "the file ends inside a node: it is truncated");
  } catch (const protozero::exception& error) {
    throw BadFile(offset, std::string("not a Chakra node: ") + error.what());
  }
  return calls.finish(false);
}

namespace {

// Protobuf's JSON writes enums by name and 64-bit numbers as texts.
std::int64_t type_of(const Value* value) {
  const std::string_view name = text_or_empty(value);
  return name == "COMM_SEND_NODE"   ? node_type::send
         : name == "COMM_RECV_NODE" ? node_type::recv
         : name == "COMM_COLL_NODE" ? node_type::collective
                                    : number_or(value, 0);
}

Attribute attribute_of(const Value& value) {
  constexpr std::array<std::string_view, 6> numbers = {"int64Val",  "int32Val",  "uint64Val",
                                                       "uint32Val", "sint64Val", "sint32Val"};
  Attribute attribute{text_or_empty(find(value, "name")), -1, text_or_empty(find(value, "stringVal"))};
  for (const std::string_view key : numbers) {
    attribute.number = std::max(attribute.number, number_or(find(value, key), -1));
  }
  return attribute;
}

ChakraNode printed_node(const Value& value) {
  ChakraNode node;
  node.type = type_of(find(value, "type"));
  node.start_us = count_or(find(value, "startTimeMicros"), 0);
  node.duration_us = count_or(find(value, "durationMicros"), 0);
  for (const Value& attribute : items_of(find(value, "attr"))) {
    node.set(attribute_of(attribute));
  }
  return node;
}

ChakraNode table_node(const Value& value) {
  ChakraNode node;
  node.type = type_of(find(value, "NodeType"));
  node.duration_us = count_or(find(value, "runtime"), 0);
  for (const std::string_view key : {"comm_type", "comm_size", "comm_src", "comm_dst", "pg_name"}) {
    const Value* field = find(value, key);
    node.set({key, number_or(field, -1), text_or_empty(field)});
  }
  return node;
}

}  // namespace

bool looks_like_chakra_json(const Value& value) {
  const bool is_printed = std::ranges::any_of(
      items_of(&value) | std::views::take(2),
      [](const Value& message) { return text_or_empty(find(message, "type")).ends_with("_NODE"); });
  return is_printed || find(value, "workload_graph") != nullptr;
}

RankRecording decode_chakra_json(const Value& value, Rank rank) {
  CallRecorder calls;
  const Value* table = find(value, "workload_graph");
  for (const Value& node : items_of(table == nullptr ? &value : table)) {
    add(calls, table == nullptr ? printed_node(node) : table_node(node), rank);
  }
  return calls.finish(false);
}

bool looks_like_chakra_groups(const Value& value) {
  if (!value.is(Value::Kind::dict) || value.node->size == 0) {
    return false;
  }
  for (std::uint32_t i = 0; i + 1 < value.node->size; i += 2) {
    const std::size_t size = items_of(&value.node->items[i + 1]).size();
    const std::string_view name = text_or_empty(&value.node->items[i]);
    const bool is_number = !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
    if (!is_number || size == 0 || members_of(&value.node->items[i + 1]).size() != size) {
      return false;
    }
  }
  return true;
}

RankRecording decode_chakra_groups(const Value& value) {
  CallRecorder calls;
  for (std::uint32_t i = 0; i + 1 < value.node->size; i += 2) {
    calls.group(text_or_empty(&value.node->items[i]), "", members_of(&value.node->items[i + 1]));
  }
  RankRecording result = calls.finish(false);
  result.names_groups_only = true;
  return result;
}

}  // namespace rollcall::traces
