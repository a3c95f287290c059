#pragma once

// Which format a file is of, by what is in it: names lie.

#include <span>
#include <string_view>

#include "traces/dumps/rank_recording.h"
#include "traces/values/value.h"

namespace rollcall::traces {

struct SourceFile {
  std::string_view bytes;
  Value value;     // none: neither pickle nor JSON
  Rank rank = -1;  // what its name says; -1: nothing
};

struct Format {
  std::string_view name;
  bool (*fits)(const SourceFile& file);
  RankRecording (*decode)(const SourceFile& file);  // throws BadFile
};

std::span<const Format> formats();
// The first that fits, or null.
const Format* format_of(const SourceFile& file);

}  // namespace rollcall::traces
