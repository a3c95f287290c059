#pragma once

// Quantities with units, as people write them: "5ms", "64MiB", "400Gbps". A number without a unit is refused,
// because readers of the file would have to guess.

#include <cstdint>
#include <optional>
#include <string_view>

#include "scenarios/json/diagnostic.h"
#include "sim/base/time.h"

namespace rollcall::scenario {

using Quantity = Parsed<std::int64_t>;

// "5ms", "1.5us", "2h": nanoseconds. Units: ns, us (or µs), ms, s, min, h.
Quantity parse_duration(std::string_view text);

// "10%": millionths of a whole, at most a thousand wholes.
Quantity parse_fraction(std::string_view text);

// "nan", "inf", "-inf": numbers that JSON cannot write. Nothing for other texts.
std::optional<double> parse_non_finite(std::string_view text);

// "512B", "64MiB", "25MB": bytes. KiB and so on are powers of 1024, kB and so on powers of 1000.
Quantity parse_bytes(std::string_view text);

// "400Gbps", "50GB/s": bytes per second. A small b is a bit, a large one a byte.
Quantity parse_bandwidth(std::string_view text);

}  // namespace rollcall::scenario
