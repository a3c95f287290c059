// The golden programs once more, on real Gloo processes, at their own number of ranks and at 2, 4 and 8: the calls,
// results, output and errors of every rank must be those of the simulator, bit by bit. (golden_test.cc checks that the
// simulator does what PyTorch did.)

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/conformance/golden_case.h"
#include "tests/conformance/programs.h"
#include "tests/conformance/real_runs.h"

namespace rollcall::golden::real_golden_test {
namespace {

// A program's notes about itself are printed, so that they are compared like everything else.
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
  sim::Options options{.world_size = golden.world_size,
                       .backend = "gloo",
                       .torch = golden.torch,
                       .timeout = golden.timeout,
                       .finished_ranks_exit = golden.finished_ranks_exit};
  for (std::size_t i = 0; i < program.groups.size(); ++i) {
    options.groups.push_back({.name = "g" + std::to_string(i + 1), .ranks = program.groups[i]});
  }
  return options;
}

// Counts how a family's programs were run on real ranks.
struct Tally {
  std::map<Rank, int> ran;     // by number of ranks
  int under_detail = 0;        // it compares calls first, which real ranks do not do
  int groups_need_others = 0;  // at some sizes, their groups name ranks that do not exist
  int waits_for_timeout = 0;   // run only at their own size: two seconds are short for many processes
};

bool has_members(const Program& program, Rank ranks) {
  return std::ranges::all_of(program.groups, [&](const std::vector<Rank>& group) {
    return std::ranges::all_of(group, [&](Rank rank) { return rank < ranks; });
  });
}

// The program at its own number of ranks, and at 2, 4 and 8.
void add_runs(const GoldenCase& golden, const Program& program, Tally& tally,
              std::vector<test::NamedRun>& runs) {
  bool all_fit = true;
  bool waits = false;
  const std::set<Rank> sizes{golden.world_size, 2, 4, 8};
  for (const Rank ranks : sizes) {
    // The run keeps it alive.
    const auto sized = std::make_shared<GoldenCase>(at_world_size(golden, ranks));
    const sim::Program body = [sized, program](Rank rank) { run_body(*sized, program, rank); };
    const bool fits = has_members(program, ranks);
    all_fit = all_fit && fits;
    if (!fits) {
      continue;
    }
    sim::Options options = options_of(*sized, program);
    if (options.timeout > 0 && !test::hangs(options, body)) {
      options.timeout = 0;  // no case depends on it, and a slow machine must not reach it
    }
    waits = waits || options.timeout > 0;
    if (options.timeout == 0 || ranks == golden.world_size) {
      ++tally.ran[ranks];
      runs.push_back({fmt::format("{} at {} ranks", golden.name, ranks), options, body});
    }
  }
  tally.groups_need_others += all_fit ? 0 : 1;
  tally.waits_for_timeout += waits ? 1 : 0;
}

void print_tally(const std::string& family, const Tally& tally) {
  std::cout << fmt::format("{:<10}on real Gloo ranks:", family);
  for (const auto& [ranks, count] : tally.ran) {
    std::cout << fmt::format(" {} at {},", count, ranks);
  }
  std::cout << fmt::format(
      " left out: {} under DETAIL; at some sizes: {} with groups of more ranks, {} that wait for a timeout\n",
      tally.under_detail, tally.groups_need_others, tally.waits_for_timeout);
}

void check_family(const std::string& family) {
  if (!test::has_gloo()) {
    return;
  }
  Tally tally;
  std::vector<test::NamedRun> runs;
  for (const auto& path : golden_files(golden_folder())) {
    const GoldenCase golden = read_golden_case(path);
    if (golden.family != family) {
      continue;
    }
    if (golden.detail) {
      ++tally.under_detail;
    } else if (const std::optional<Program> program = find_program(golden)) {
      add_runs(golden, *program, tally, runs);
    }
  }
  CHECK(!runs.empty());
  CHECK(test::differences(runs) == "");
  print_tally(family, tally);
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

}  // namespace rollcall::golden::real_golden_test
