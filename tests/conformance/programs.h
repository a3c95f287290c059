#pragma once

// The programs of the golden cases, written for rollcall, which do what the Python programs did. There is one table per
// family. A case selects its program by its parameters if they say everything, otherwise by its name, so that a new
// file of a known kind runs without new code.

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tests/conformance/case_context.h"
#include "tests/conformance/golden_case.h"

namespace rollcall::golden {

struct Program {
  std::function<void(CaseContext&)> body;
  std::vector<std::vector<Rank>> groups{};  // made by its new_group calls, in order: g1, g2, ...
};

// A row of a family's table. `name` is the program's whole name, or a prefix of it followed by '*'.
struct NamedProgram {
  std::string_view name;
  void (*body)(CaseContext&);
  std::vector<std::vector<Rank>> groups{};
};

// A rank's usual input: 10 * rank + 1, 10 * rank + 2, ...
Tensor ramp(std::int64_t rank, std::int64_t numel, Dtype dtype = Dtype::float32);

// True for families that have programs; other tests check the files of the others.
bool has_programs(std::string_view family);

// Returns the program of a case, or nothing if no table has it.
std::optional<Program> find_program(const GoldenCase& golden);

// The tables. The first matching row counts, so whole names come before patterns.
void tally_program(CaseContext& context);
void suite_program(CaseContext& context);
void scripted_program(CaseContext& context);
void drawn_program(CaseContext& context);
std::span<const NamedProgram> post_hook_programs();
std::span<const NamedProgram> join_programs();
std::span<const NamedProgram> join_misuse_programs();
std::span<const NamedProgram> join_group_programs();
std::span<const NamedProgram> p2p_programs();
std::span<const NamedProgram> args_programs();
std::span<const NamedProgram> prim_programs();
std::span<const NamedProgram> desync_programs();
std::span<const NamedProgram> group_programs();
std::span<const NamedProgram> new_programs();
std::span<const NamedProgram> parallel_programs();  // of family new
void ddp_program(CaseContext& context);
std::span<const NamedProgram> ddp_programs();  // also of zero
std::span<const NamedProgram> fsdp_programs();

}  // namespace rollcall::golden
