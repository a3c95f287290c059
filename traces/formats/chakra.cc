#include "traces/formats/chakra.h"

#include <cstdint>

#include <protozero/pbf_reader.hpp>

#include "traces/formats/call_recorder.h"
#include "traces/formats/chakra_node.h"
#include "traces/values/value_access.h"

namespace rollcall::traces {

namespace {

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
ChakraAttribute read_attribute(pbf_reader message) {
  ChakraAttribute attribute;
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
  ChakraCalls calls(rank);
  Messages messages(bytes);
  std::size_t offset = 0;
  try {
    messages.next();  // GlobalMetadata
    while (!messages.is_done()) {
      offset = messages.offset();
      calls.add(read_node(messages.next()));
    }
  } catch (const protozero::end_of_buffer_exception&) {
    throw BadFile(offset, "the file ends inside a node: it is truncated");
  } catch (const protozero::exception& error) {
    throw BadFile(offset, std::string("not a Chakra node: ") + error.what());
  }
  return calls.finish();
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
