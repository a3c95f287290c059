#include "tests/conformance/programs.h"

#include <algorithm>
#include <array>

namespace rollcall::golden {

namespace {

constexpr std::array<std::string_view, 12> families{"new",  "tally", "suite",  "mismatch", "join", "args",
                                                    "prim", "p2p",   "desync", "group",    "ddp",  "zero"};

bool fits(std::string_view pattern, std::string_view name) {
  return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern;
}

std::optional<Program> find_in(std::span<const NamedProgram> table, std::string_view name) {
  for (const NamedProgram& row : table) {
    if (fits(row.name, name)) {
      return Program{row.body, row.groups};
    }
  }
  return std::nullopt;
}

}  // namespace

Tensor ramp(std::int64_t rank, std::int64_t numel, Dtype dtype) {
  std::vector<double> values;
  for (std::int64_t i = 1; i <= numel; ++i) {
    values.push_back(static_cast<double>(10 * rank + i));
  }
  return Tensor::of(values, dtype);
}

bool has_programs(std::string_view family) {
  return std::find(families.begin(), families.end(), family) != families.end();
}

std::optional<Program> find_program(const GoldenCase& golden) {
  if (golden.family == "tally") {
    return Program{tally_program};
  }
  if (golden.family == "suite") {
    return Program{suite_program};
  }
  if (golden.family == "mismatch" && golden.params.has("forward")) {
    return Program{scripted_program};
  }
  if (golden.params.has("script")) {
    Program program{drawn_program};
    if (golden.params.has("groups")) {
      for (const std::vector<std::int64_t>& ranks : golden.params.table("groups")) {
        program.groups.emplace_back(ranks.begin(), ranks.end());
      }
    }
    return program;
  }
  std::string name = golden.program_name();
  for (auto table : {post_hook_programs(), join_programs(), join_misuse_programs(), join_group_programs(),
                     args_programs(), p2p_programs(), prim_programs(), desync_programs(), group_programs(),
                     ddp_programs(), new_programs(), parallel_programs(), fsdp_programs()}) {
    if (std::optional<Program> found = find_in(table, name)) {
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace rollcall::golden
