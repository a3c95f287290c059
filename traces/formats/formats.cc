#include "traces/formats/formats.h"

#include <algorithm>
#include <array>

#include "traces/dumps/dump_decoder.h"
#include "traces/formats/chakra.h"
#include "traces/formats/execution_trace.h"
#include "traces/formats/kineto.h"
#include "traces/formats/param_trace.h"
#include "traces/formats/ring.h"

namespace rollcall::traces {

namespace {

constexpr std::array<Format, 8> table = {{
    {"ring of a watched rank", [](const SourceFile& file) { return looks_like_ring(file.bytes); },
     [](const SourceFile& file) { return decode_ring(file.bytes); }},
    {"Flight Recorder dump", [](const SourceFile& file) { return looks_like_dump(file.value); },
     [](const SourceFile& file) { return decode_dump(file.value, file.bytes.size()); }},
    {"profiler trace", [](const SourceFile& file) { return looks_like_kineto(file.value); },
     [](const SourceFile& file) { return decode_kineto(file.value); }},
    {"execution trace", [](const SourceFile& file) { return looks_like_execution_trace(file.value); },
     [](const SourceFile& file) { return decode_execution_trace(file.value, file.rank); }},
    {"PARAM trace", [](const SourceFile& file) { return looks_like_param_trace(file.value); },
     [](const SourceFile& file) { return decode_param_trace(file.value, file.rank); }},
    {"Chakra trace as JSON", [](const SourceFile& file) { return looks_like_chakra_json(file.value); },
     [](const SourceFile& file) { return decode_chakra_json(file.value, file.rank); }},
    {"Chakra groups", [](const SourceFile& file) { return looks_like_chakra_groups(file.value); },
     [](const SourceFile& file) { return decode_chakra_groups(file.value); }},
    {"Chakra trace",
     [](const SourceFile& file) { return file.value.is(Value::Kind::none) && looks_like_chakra(file.bytes); },
     [](const SourceFile& file) { return decode_chakra(file.bytes, file.rank); }},
}};

}  // namespace

std::span<const Format> formats() { return table; }

const Format* format_of(const SourceFile& file) {
  const auto* const format = std::ranges::find_if(table, [&](const Format& each) { return each.fits(file); });
  return format == table.end() ? nullptr : format;
}

}  // namespace rollcall::traces
