#include <string>

#include "scenarios/program/units.h"
#include "tests/catch.h"

namespace rollcall::scenario::units_test {

TEST_CASE("durations become nanoseconds, exactly", "[scenarios]") {
  CHECK(parse_duration("5ms").value == 5'000'000);
  CHECK(parse_duration("1.5us").value == 1500);
  CHECK(parse_duration("2 µs").value == 2000);
  CHECK(parse_duration("0.000000001s").value == 1);
  CHECK(parse_duration("1h").value == 3'600'000'000'000);
  CHECK(parse_duration("10min").value == 600'000'000'000);
  CHECK(parse_duration("0ns").value == 0);
}

TEST_CASE("sizes know powers of 1000 and of 1024", "[scenarios]") {
  CHECK(parse_bytes("512B").value == 512);
  CHECK(parse_bytes("64MiB").value == 64 * 1024 * 1024);
  CHECK(parse_bytes("25MB").value == 25'000'000);
  CHECK(parse_bytes("1.5KiB").value == 1536);
}

TEST_CASE("bandwidths tell bits from bytes", "[scenarios]") {
  CHECK(parse_bandwidth("400Gbps").value == 50'000'000'000);
  CHECK(parse_bandwidth("50GB/s").value == 50'000'000'000);
  CHECK(parse_bandwidth("8bps").value == 1);
}

TEST_CASE("parts of a whole are in millionths", "[scenarios]") {
  CHECK(parse_fraction("10%").value == 100'000);
  CHECK(parse_fraction("0.5 %").value == 5'000);
  CHECK(parse_fraction("100001%").problem == "this part is too large");
}

TEST_CASE("a number without a unit is refused with a hint", "[scenarios]") {
  CHECK(parse_duration("5").problem == "a duration needs a unit, such as \"5ms\"");
  CHECK(parse_bytes("64").problem == "a size needs a unit, such as \"64MiB\"");
  CHECK(parse_bandwidth("400").problem == "a bandwidth needs a unit, such as \"400Gbps\"");
}

TEST_CASE("bad quantities say what is wrong", "[scenarios]") {
  CHECK(parse_duration("").problem == "\"\" is not a duration; write a number and a unit, such as \"5ms\"");
  CHECK(parse_duration("ms").problem ==
        "\"ms\" is not a duration; write a number and a unit, such as \"5ms\"");
  CHECK(parse_duration("1.2.3ms").problem ==
        "\"1.2.3ms\" is not a duration; write a number and a unit, such as \"5ms\"");
  CHECK(parse_duration("-5ms").problem == "a duration cannot be negative");
  CHECK(parse_duration("0.5ns").problem == "this duration is too small to represent");
  CHECK(parse_duration("9999999999h").problem == "this duration is too large");
  CHECK(parse_duration("4611686018427387903ns").value == INT64_MAX / 2);  // the sum of two still fits
  CHECK(parse_duration("4611686018427387904ns").problem == "this duration is too large");
  CHECK(parse_duration("99999999999999999999ms").problem.ends_with("such as \"5ms\""));
  CHECK(parse_duration("5sec").problem ==
        "\"sec\" is not a unit of duration; the units are ns, us, µs, ms, s, m, min, h");
  CHECK(parse_bytes("5MIB").problem ==
        "\"MIB\" is not a unit of size; the units are B, kB, KB, MB, GB, TB, KiB, MiB, GiB, TiB (did you "
        "mean \"MiB\"?)");
}

}  // namespace rollcall::scenario::units_test
