#pragma once

// Chakra execution traces (name.RANK.et): a graph of one rank's work as protobuf, for simulators.
//
// Kept: the communication nodes in the order of the file, with kind, group, bytes, and the other end of
// messages; start times and durations where they are filled in. Ignored: compute and memory nodes, dependencies.
// Each message is a node, preceded by its length as a varint; the first is GlobalMetadata
// (mlcommons/chakra: schema/protobuf/et_def.proto). The members of groups are in a separate JSON file:
// {"1": [0, 1, 2, 3]}.
//
// Traces as JSON come in two forms: the sequence of messages as protobuf prints them, written by chakra_jsonizer
// (mlcommons/chakra: src/jsonizer/jsonizer.py), and the table that Chakra's feeder also accepts,
// {"workload_graph": [{"Id", "NodeType", "comm_type", ...}]} (src/feeder/JSONNode.cpp).

#include <string_view>

#include "traces/dumps/rank_recording.h"
#include "traces/values/value.h"

namespace rollcall::traces {

bool looks_like_chakra(std::string_view bytes);
bool looks_like_chakra_json(const Value& value);
bool looks_like_chakra_groups(const Value& value);

// `rank`: from the file's name, used for messages. Throws BadFile.
RankRecording decode_chakra(std::string_view bytes, Rank rank);
RankRecording decode_chakra_json(const Value& value, Rank rank);
RankRecording decode_chakra_groups(const Value& value);

}  // namespace rollcall::traces
