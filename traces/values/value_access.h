#pragma once

// Accessors for the readers of recordings. A value that does not exist, or has another type, counts as missing:
// recorders of other versions leave fields out, and hostile files put anything there.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/c10d/op.h"
#include "traces/values/value.h"

namespace rollcall::traces {

// No job is larger; a larger number is a mistake or an attack.
constexpr Rank ranks_max = 1 << 24;

// A number, including its form as a text in the pg_status of a JSON dump: "12".
std::int64_t number_or(const Value* value, std::int64_t otherwise);
// A count or a time: never negative, and small enough that the judge can add and subtract such numbers. Any other
// value counts as missing.
std::int64_t count_or(const Value* value, std::int64_t otherwise);
// A number that may have a fraction.
double real_or(const Value* value, double otherwise);
// Milliseconds as a record keeps them: -1 for a value that is not a duration, or is too long to be added to a
// time.
float duration_or_none(double milliseconds);
std::string_view text_or_empty(const Value* value);
// The items of a list; empty for any other value.
std::span<const Value> items_of(const Value* value);

std::vector<std::int64_t> counts_of(const Value* value);
std::vector<std::vector<std::int64_t>> shapes_of(const Value* value);
std::vector<std::string> texts_of(const Value* value);

// Parses "[0, 1, 2]", with or without blanks. Empty for any other text, or one that is cut off: "[0, 1,
// ...]".
std::optional<std::vector<Rank>> parse_ranks(std::string_view text);
// The members of a group, given as such a text or as a list: ascending, each once. Empty if unknown.
std::vector<Rank> members_of(const Value* value);

}  // namespace rollcall::traces
