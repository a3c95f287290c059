#pragma once

// Turns one rank's dump from a tree of values into records.

#include <cstddef>

#include "traces/dumps/rank_recording.h"
#include "traces/values/value.h"

namespace rollcall::traces {

// False if the value is something else altogether, such as another program's JSON.
bool looks_like_dump(const Value& value);

// `bytes` is the size of the file, which bounds the work: a pickle may refer to one list a million
// times. Does not set the rank, which is not in the file. Throws BadFile.
RankRecording decode_dump(const Value& value, std::size_t bytes);

}  // namespace rollcall::traces
