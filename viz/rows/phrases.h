#pragma once

// The small pieces of English that reports are made of.

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/report/report.h"

namespace rollcall::viz {

// "41.25 us": in the unit that leaves one to three digits before the point, with at most three after it.
std::string duration_phrase(Duration duration);
// In a fixed unit, for tables and for programs: "1.250" and 1250.0.
std::string in_milliseconds(Duration duration);
double in_microseconds(Duration duration);

// "1 call", "88 calls".
std::string count_phrase(std::int64_t count, std::string_view noun);

// "4 ranks finished, 88 calls in 150 us of simulated time", of a run without a finding.
std::string success_phrase(const Report& report);

// "world size 4, backend nccl, torch 2.14, seed 0, 88 calls, 150 us simulated"
std::string run_phrase(const Report& report);

// "all_reduce #5 (float32 x 1, SUM)", with " on dp" for groups other than the world.
std::string call_with_arguments(const Call& call);

// The call that the ranks waiting here are owed: "all_reduce #5 on dp", "send to rank 2" for a receive.
std::string owed_phrase(const Place& place);

// " from counter.forward at train.json:12:7", as far as known.
std::string origin_phrase(std::string_view label, std::string_view site);
std::string call_origin(const Call& call);

// "13 steps on world with 2.8 of 4 ranks on average".
std::string join_phrase(const JoinCost& cost);
// The share of the run that the ranks waited for others, in tenths of a percent.
std::int64_t idle_permille(const JoinedRanks& ranks, Duration run);
// "joined after 5 steps, idle for 20 us (15.4 % of the run), 4 calls shadowed". `run` is the run's duration.
std::string joined_phrase(const JoinedRanks& ranks, Duration run);

// "1.25 GiB": in the power of 1024 that leaves one to four digits before the point, with two after it.
std::string bytes_phrase(std::int64_t bytes);
// "1536 KiB": in the largest power of 1024 that divides it, so that nothing is lost. `gap` is put before the unit.
std::string exact_bytes_phrase(std::int64_t bytes, std::string_view gap = " ");
// "one GPU of 4 holds 2.3 times as much as the least loaded".
std::string memory_phrase(const MemoryUse& use);
// "2.31 GiB: parameters 400 MiB, ...", without parts that are zero.
std::string device_memory_phrase(const DeviceMemory& memory);

// The number of inputs that the ranks of one line took: "" if the program does not count them, "5 inputs", or
// "5 to 1004 inputs" for a line of ranks with different numbers.
std::string inputs_phrase(std::int64_t fewest, std::int64_t most);

// The first line of a text, cut to the width of a row; " ..." replaces the rest.
std::string folded_text(const std::string& text);

// "finished after 5 inputs", "waiting in all_reduce #5 (...) at train.json:12:7, for rank 0". `inputs`
// comes from inputs_phrase.
std::string state_phrase(const RankClass& ranks, const std::string& inputs);

}  // namespace rollcall::viz
