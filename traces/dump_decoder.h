#pragma once

// One rank's dump: from a tree of values to records.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/dump_tables.h"
#include "traces/value.h"

namespace rollcall::traces {

// A decoded file. Its numbers refer to its own tables.
struct DecodedDump {
  check::RankDump dump;
  DumpTables tables;
};

// False when the value is something else altogether: another program's JSON.
bool looks_like_dump(const Value& value);

// `bytes` is the size of the file, which bounds the work: a pickle may refer to one list a million
// times. The rank is not set: it is not in the file. Throws BadFile.
DecodedDump decode_dump(const Value& value, std::size_t bytes);

// "[0, 1, 2]", with or without blanks. Nothing when it is anything else.
std::optional<std::vector<Rank>> parse_ranks(std::string_view text);

}  // namespace rollcall::traces
