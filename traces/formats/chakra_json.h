#pragma once

// Chakra traces as JSON, of which there are two: the messages one after the other as protobuf prints them, as
// chakra_jsonizer writes them (mlcommons/chakra: src/jsonizer/jsonizer.py), and the table that its feeder also takes,
// {"workload_graph": [{"Id", "NodeType", "comm_type", ...}]} (src/feeder/JSONNode.cpp).

#include "traces/dumps/rank_recording.h"
#include "traces/values/value.h"

namespace rollcall::traces {

bool looks_like_chakra_json(const Value& value);

// `rank` is what the file's name says, for messages.
RankRecording decode_chakra_json(const Value& value, Rank rank);

}  // namespace rollcall::traces
