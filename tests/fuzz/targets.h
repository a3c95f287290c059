#pragma once

// What fuzzers throw bytes at: one function for each reader of files that somebody else wrote. A reader may
// refuse the bytes with its own error; anything else that ends the process is a finding.

#include <array>
#include <string_view>

namespace rollcall::fuzz {

struct Target {
  const char* name;  // also of its folder in tests/corpus
  void (*read)(std::string_view bytes);
};

void read_pickle_dump(std::string_view bytes);
void read_json_dump(std::string_view bytes);
void read_scenario(std::string_view bytes);
void read_expression(std::string_view bytes);
void read_report(std::string_view bytes);

inline constexpr std::array<Target, 5> targets = {{
    {"pickle", read_pickle_dump},
    {"json_dump", read_json_dump},
    {"scenario", read_scenario},
    {"expression", read_expression},
    {"report", read_report},
}};

}  // namespace rollcall::fuzz
