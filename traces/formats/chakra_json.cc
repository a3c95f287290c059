#include "traces/formats/chakra_json.h"

#include <algorithm>
#include <array>
#include <ranges>

#include "traces/formats/chakra_node.h"
#include "traces/values/value_access.h"

namespace rollcall::traces {

namespace {

// Protobuf's JSON writes enums by name and 64-bit numbers as texts.
std::int64_t type_of(const Value* value) {
  const std::string_view name = text_or_empty(value);
  return name == "COMM_SEND_NODE"   ? chakra_type::send
         : name == "COMM_RECV_NODE" ? chakra_type::recv
         : name == "COMM_COLL_NODE" ? chakra_type::collective
                                    : number_or(value, 0);
}

ChakraAttribute attribute_of(const Value& value) {
  constexpr std::array<std::string_view, 6> numbers = {"int64Val",  "int32Val",  "uint64Val",
                                                       "uint32Val", "sint64Val", "sint32Val"};
  ChakraAttribute attribute{text_or_empty(find(value, "name")), -1, text_or_empty(find(value, "stringVal"))};
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
  ChakraCalls calls(rank);
  const Value* table = find(value, "workload_graph");
  for (const Value& node : items_of(table == nullptr ? &value : table)) {
    calls.add(table == nullptr ? printed_node(node) : table_node(node));
  }
  return calls.finish();
}

}  // namespace rollcall::traces
