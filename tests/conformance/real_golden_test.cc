// The golden programs once more, on real Gloo processes: the calls, results, output and errors of every rank
// must be those of the simulator, bit by bit. (That the simulator does what PyTorch did is golden_test.cc's.)

#include <iostream>
#include <map>

#include <fmt/format.h>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/conformance/golden_case.h"
#include "tests/conformance/programs.h"
#include "tests/conformance/real_runs.h"

namespace rollcall::golden {
namespace {

// What ranks of this version cannot do: DETAIL's comparison, and waiting for timeouts is not a quick test.
bool runs_on_real_ranks(const GoldenCase& golden) {
  return has_programs(golden.family) && !golden.detail && golden.timeout == 0;
}

// What a program notes about itself is printed, so that it takes the same way as everything else.
void run_body(const GoldenCase& golden, const Program& program, Rank rank) {
  const RankLog no_log;
  RankNotes notes;
  CaseContext context(rank, golden, no_log, notes);
  const auto tell = [&notes] {
    print(notes.values().dump());
    print(notes.caught().dump());
  };
  try {
    program.body(context);
  } catch (const Error&) {
    tell();
    throw;
  }
  tell();
}

sim::Options options_of(const GoldenCase& golden, const Program& program) {
  sim::Options options{
      .world_size = golden.world_size, .backend = "gloo", .finished_ranks_exit = golden.finished_ranks_exit};
  for (std::size_t i = 0; i < program.groups.size(); ++i) {
    options.groups.push_back({.name = "g" + std::to_string(i + 1), .ranks = program.groups[i]});
  }
  return options;
}

void check_family(const std::string& family) {
  if (!test::has_gloo()) {
    return;
  }
  int cases = 0;
  for (const auto& path : golden_files(golden_folder())) {
    const GoldenCase golden = read_golden_case(path);
    const std::optional<Program> program = has_programs(golden.family) ? find_program(golden) : std::nullopt;
    if (golden.family == family && runs_on_real_ranks(golden) && program) {
      ++cases;
      const std::string differs = test::differences(golden.name, options_of(golden, *program),
                                                    [&](Rank rank) { run_body(golden, *program, rank); });
      CHECK(differs == "");
    }
  }
  CHECK(cases > 0);
  std::cout << fmt::format("{:<10}{:>4} golden programs on real Gloo ranks\n", family, cases);
}

}  // namespace

TEST_CASE("golden tallies are the same on real ranks", "[fiber][real]") { check_family("tally"); }
TEST_CASE("golden suites are the same on real ranks", "[fiber][real]") { check_family("suite"); }
TEST_CASE("golden mismatches are the same on real ranks", "[fiber][real]") { check_family("mismatch"); }
TEST_CASE("golden joins are the same on real ranks", "[fiber][real]") { check_family("join"); }
TEST_CASE("golden argument errors are the same on real ranks", "[fiber][real]") { check_family("args"); }
TEST_CASE("golden primitives are the same on real ranks", "[fiber][real]") { check_family("prim"); }
TEST_CASE("golden messages are the same on real ranks", "[fiber][real]") { check_family("p2p"); }
TEST_CASE("golden DDP runs are the same on real ranks", "[fiber][real]") { check_family("ddp"); }
TEST_CASE("golden ZeRO runs are the same on real ranks", "[fiber][real]") { check_family("zero"); }
TEST_CASE("golden groups are the same on real ranks", "[fiber][real]") { check_family("group"); }
TEST_CASE("golden desyncs are the same on real ranks", "[fiber][real]") { check_family("desync"); }

}  // namespace rollcall::golden
