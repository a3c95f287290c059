#pragma once

// The small pieces of English that reports are made of.

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/report/report.h"

namespace rollcall::viz {

// "41.25 us": the unit that leaves one to three digits before the point, three after it at most.
std::string duration_phrase(Duration duration);
// Of one unit, for tables and for programs: "1.250" and 1250.0.
std::string in_milliseconds(Duration duration);
double in_microseconds(Duration duration);

// ", torch 2.14"; nothing where it is not known.
std::string torch_phrase(const std::string& torch);

// "1 call", "88 calls".
std::string count_phrase(std::int64_t count, std::string_view noun);

// "all_reduce #5 (float32 x 1, SUM)", with " on dp" for groups other than the world.
std::string call_with_arguments(const Call& call);

// What somebody who waits in this call is owed: "all_reduce #5 on dp", "send to rank 2" for a receive.
std::string owed_phrase(const Place& place);

// " from counter.forward at train.json:12:7", as far as it is known.
std::string origin_phrase(std::string_view label, std::string_view site);
std::string call_origin(const Call& call);

// "13 steps on world with 2.8 of 4 ranks on average".
std::string join_phrase(const JoinCost& cost);
// How much of the run the ranks waited for the others, in tenths of a percent.
std::int64_t idle_permille(const JoinedRanks& ranks, Duration run);
// "joined after 5 steps, idle for 20 us (15.4 % of the run), 4 calls shadowed". run: how long it took.
std::string joined_phrase(const JoinedRanks& ranks, Duration run);

// "1.25 GiB": a power of 1024 that leaves one to four digits before the point, two after it.
std::string bytes_phrase(std::int64_t bytes);
// "1536 KiB": the largest power of 1024 that divides it, so that nothing is lost. `gap` stands before the unit.
std::string exact_bytes_phrase(std::int64_t bytes, std::string_view gap = " ");
// "one GPU of 4 holds 2.3 times as much as the least loaded".
std::string memory_phrase(const MemoryUse& use);
// "2.31 GiB: parameters 400 MiB, ...", what is nothing left out.
std::string device_memory_phrase(const DeviceMemory& memory);

// How many inputs ranks of one line took: "" when the program does not count, "5 inputs", and
// "5 to 1004 inputs" for a line that stands for ranks with different numbers.
std::string inputs_phrase(std::int64_t fewest, std::int64_t most);

// The first line of a text, and no more of it than a row has room for; " ..." stands for the rest.
std::string folded_text(const std::string& text);

// "finished after 5 inputs", "waiting in all_reduce #5 (...) at train.json:12:7, for rank 0". `inputs`
// is inputs_phrase's.
std::string state_phrase(const RankClass& ranks, const std::string& inputs);

}  // namespace rollcall::viz
