#pragma once

// Chakra execution traces (name.RANK.et): a graph of one rank's work as protobuf, for simulators.
//
// Kept: the nodes of communication in the order of the file, with kind, group, bytes and the other end of
// messages; start times and durations where they are filled in. Ignored: compute and memory nodes, dependencies.
// A message per node, each behind its length as a varint; the first is GlobalMetadata
// (mlcommons/chakra: schema/protobuf/et_def.proto). The members of groups stand in a JSON file of their own:
// {"1": [0, 1, 2, 3]}.

#include <string_view>

#include "traces/dumps/rank_recording.h"
#include "traces/values/value.h"

namespace rollcall::traces {

bool looks_like_chakra(std::string_view bytes);
bool looks_like_chakra_groups(const Value& value);

// `rank` is what the file's name says, for messages. Throws BadFile.
RankRecording decode_chakra(std::string_view bytes, Rank rank);
RankRecording decode_chakra_groups(const Value& value);

}  // namespace rollcall::traces
