#pragma once

// What readers of recordings ask of a Value. Whatever is not there, or is something else, counts as missing:
// recorders of other versions leave fields out, and hostile files put anything there.

#include <optional>
#include <utility>

#include "sim/c10d/op.h"
#include "traces/values/value.h"

namespace rollcall::traces {

// No job is larger; a number beyond is a mistake or an attempt.
constexpr Rank ranks_max = 1 << 24;

// A number, also as JSON's dump spells it in pg_status: "12".
std::int64_t number_or(const Value* value, std::int64_t otherwise);
// A number that counts something, or a time: never negative, and small enough that the judge can add and
// subtract such numbers. Whatever else a file claims counts as missing.
std::int64_t count_or(const Value* value, std::int64_t otherwise);
// A number that may have a fraction.
double real_or(const Value* value, double otherwise);
// Milliseconds as a record keeps them: -1 for what is not a duration, or too long to be added to a time.
float duration_or_none(double milliseconds);
std::string_view text_or_empty(const Value* value);
// Items of a list; of anything else, none.
std::pair<const Value*, std::uint32_t> items_of(const Value* value);

std::vector<std::vector<std::int64_t>> shapes_of(const Value* value);
std::vector<std::string> texts_of(const Value* value);

// "[0, 1, 2]", with or without blanks. Nothing when it is anything else, or cut off: "[0, 1, ...]".
std::optional<std::vector<Rank>> parse_ranks(std::string_view text);
// Members of a group, as such a text or as a list: ascending, each once. Empty when unknown.
std::vector<Rank> members_of(const Value* value);

}  // namespace rollcall::traces
