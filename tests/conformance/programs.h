#pragma once

// The programs of the golden cases, written for rollcall: what the Python ones did. One table a family.
// A case selects its program by its parameters where they say everything, else by its name, so that a
// new file of a known kind runs without new code.

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
  std::vector<std::vector<Rank>> groups{};  // of its new_group calls, in order: g1, g2, ...
};

// A row of a family's table. `name` is the program's whole name, or ends in '*' and begins it.
struct NamedProgram {
  std::string_view name;
  void (*body)(CaseContext&);
  std::vector<std::vector<Rank>> groups{};
};

// A rank's usual input: 10 * rank + 1, 10 * rank + 2, ...
Tensor ramp(std::int64_t rank, std::int64_t numel, Dtype dtype = Dtype::float32);

// True for families that have programs at all; files of others are another test's business.
bool has_programs(std::string_view family);

// The program of a case, or nothing when no table knows it.
std::optional<Program> find_program(const GoldenCase& golden);

// The tables. The first fitting row counts, so whole names stand before patterns.
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
std::span<const NamedProgram> ddp_programs();  // and zero's
std::span<const NamedProgram> fsdp_programs();

}  // namespace rollcall::golden
