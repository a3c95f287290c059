#include "traces/formats/chakra_node.h"

#include <algorithm>
#include <array>

#include "traces/values/value_access.h"

namespace rollcall::traces {

namespace {

// Indexed by CollectiveCommType.
constexpr std::array<std::string_view, 10> kinds = {
    "all_reduce", "reduce",         "all_gather",           "gather", "scatter", "broadcast",
    "all_to_all", "reduce_scatter", "reduce_scatter_block", "barrier"};

// Bounded because the judge adds and subtracts these numbers.
std::int64_t bounded(std::int64_t number) {
  constexpr std::int64_t number_max = std::int64_t{1} << 62;
  return number < number_max ? std::max<std::int64_t>(number, -1) : -1;
}

}  // namespace

void ChakraNode::set(const ChakraAttribute& attribute) {
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

void ChakraCalls::add(const ChakraNode& node) {
  RecordedCall call;
  if (node.type == chakra_type::collective && node.comm_type >= 0 &&
      static_cast<std::size_t>(node.comm_type) < kinds.size()) {
    call.name = kinds[static_cast<std::size_t>(node.comm_type)];
  } else if (node.type == chakra_type::send || node.type == chakra_type::recv) {
    const bool sends = node.type == chakra_type::send;
    call.name = sends ? "send" : "recv";
    const std::int64_t peer = sends ? node.destination : node.source;
    call.peer = peer >= 0 && peer < ranks_max ? static_cast<Rank>(peer) : -1;
  } else {
    return;
  }
  call.group = calls_.group(node.group.empty() ? "0" : node.group, "", {});
  call.numel_in = call.numel_out = node.comm_size;
  call.dtype = "bytes";
  call.created_ns = node.start_us > 0 && node.start_us < INT64_MAX / 2048 ? node.start_us * 1000 : 0;
  call.duration_ms = node.duration_us > 0 ? static_cast<double>(node.duration_us) / 1000 : -1;
  calls_.add(call, rank_);
}

}  // namespace rollcall::traces
