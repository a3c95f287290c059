#pragma once

// Chakra traces as JSON, which comes in two forms: the sequence of messages as protobuf prints them, written by
// chakra_jsonizer (mlcommons/chakra: src/jsonizer/jsonizer.py), and the table that Chakra's feeder also accepts,
// {"workload_graph": [{"Id", "NodeType", "comm_type", ...}]} (src/feeder/JSONNode.cpp).

#include "traces/dumps/rank_recording.h"
#include "traces/values/value.h"

namespace rollcall::traces {

bool looks_like_chakra_json(const Value& value);

// `rank`: from the file's name, used for messages.
RankRecording decode_chakra_json(const Value& value, Rank rank);

}  // namespace rollcall::traces
