#pragma once

// The functions that fuzzers call with bytes: one for each reader of foreign files, and one for the writers of reports.
// A reader may refuse the bytes with its own error; anything else that ends the process is a finding.

#include <array>
#include <cstddef>
#include <string_view>

namespace rollcall::fuzz {

inline constexpr std::size_t tree_bytes_max = std::size_t{256} << 20;  // of a file that is read as a tree

struct Target {
  const char* name;  // also the name of its folder in tests/corpus
  void (*read)(std::string_view bytes);
};

// Recordings of jobs: job_targets.cc.
void read_pickle_dump(std::string_view bytes);
void read_json_dump(std::string_view bytes);
void read_job_trace(std::string_view bytes);
void read_chakra(std::string_view bytes);
void read_ring(std::string_view bytes);
void read_script(std::string_view bytes);

// What else jobs leave: evidence_targets.cc.
void read_log(std::string_view bytes);
void read_stacks(std::string_view bytes);
void read_job_json(std::string_view bytes);

// Text that users write: scenario_targets.cc.
void read_scenario(std::string_view bytes);
void read_expression(std::string_view bytes);
void read_words(std::string_view bytes);

// Files of rollcall and of profilers, and the writers: report_targets.cc.
void read_report(std::string_view bytes);
void read_timeline(std::string_view bytes);
void read_results(std::string_view bytes);
void write_report(std::string_view bytes);

// Data from other machines: connection_targets.cc.
void read_connection(std::string_view bytes);

inline constexpr std::array<Target, 17> targets = {{
    {"pickle", read_pickle_dump},
    {"json_dump", read_json_dump},
    {"job_trace", read_job_trace},
    {"chakra", read_chakra},
    {"ring", read_ring},
    {"log", read_log},
    {"stacks", read_stacks},
    {"job_json", read_job_json},
    {"script", read_script},
    {"scenario", read_scenario},
    {"expression", read_expression},
    {"words", read_words},
    {"report", read_report},
    {"timeline", read_timeline},
    {"results", read_results},
    {"writers", write_report},
    {"connection", read_connection},
}};

}  // namespace rollcall::fuzz
