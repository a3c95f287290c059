#pragma once

// Detects a file's format by its content, because names can mislead.

#include <span>
#include <string_view>

#include "traces/dumps/rank_recording.h"
#include "traces/values/value.h"

namespace rollcall::traces {

struct SourceFile {
  std::string_view bytes;
  Value value;     // none if the file is neither pickle nor JSON
  Rank rank = -1;  // from the file's name; -1 if the name has none
};

struct Format {
  std::string_view name;
  bool (*fits)(const SourceFile& file);
  RankRecording (*decode)(const SourceFile& file);  // throws BadFile
};

std::span<const Format> formats();
// Returns the first format that fits, or null.
const Format* format_of(const SourceFile& file);

}  // namespace rollcall::traces
