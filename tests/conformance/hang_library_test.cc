// The hang library: 86 real failures and their fixes, as scenarios. Every failure must be found, with the right ranks
// and the right place, and every fix must be found to work.
//
//   ROLLCALL_BLESS=1 build/dev/rollcall_tests '[hang-import]'    rewrites scenarios/real_hangs

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/format/scenario.h"
#include "scenarios/import/hang.h"
#include "scenarios/run/runner.h"
#include "tests/catch.h"
#include "tests/conformance/hang_case.h"
#include "tests/contents.h"

namespace rollcall::conformance::hang_library_test {
namespace {

using rollcall::test::contents;
namespace fs = std::filesystem;
using scenario::HangVariant;

const fs::path folder = fs::path(ROLLCALL_SOURCE_DIR) / "scenarios" / "real_hangs";

fs::path scenario_path(const std::string& id, HangVariant variant) {
  return folder / (id + (variant == HangVariant::fixed ? ".fixed.json" : ".json"));
}

Report run_text(const std::string& text, const std::string& name) {
  return scenario::run(scenario::parse_scenario(text, name));
}

struct Score {
  std::size_t right = 0;
  std::size_t total = 0;

  void add(bool agrees) {
    ++total;
    right += agrees ? 1 : 0;
  }
};

std::string ranks_text(const std::vector<Rank>& ranks) { return fmt::format("{}", fmt::join(ranks, ",")); }

// Runs every case and its fix, and prints the table.
void check_library(const std::string& library) {
  Score verdicts;
  Score culprits;
  Score places;
  Score fixes;
  std::string table;
  for (const std::string& id : hang_ids(library)) {
    const std::string failing = scenario::import_hang(hang_path(id, library), HangVariant::failing);
    const std::string fixed = scenario::import_hang(hang_path(id, library), HangVariant::fixed);
    const nlohmann::json expect = read_hang(id, library).at("expect");
    const Report report = run_text(failing, id + ".json");
    const bool right[] = {verdict_agrees(expect, report), culprits_agree(expect, report),
                          place_agrees(expect, report),
                          finding_of(run_text(fixed, id + ".fixed.json").verdict) == nullptr};
    verdicts.add(right[0]);
    culprits.add(right[1]);
    places.add(right[2]);
    fixes.add(right[3]);
    const auto mark = [](bool agrees) { return agrees ? "ok" : "NO"; };
    table += fmt::format("  {:<40} {} {} {} {}  {} {} [{}]\n", id, mark(right[0]), mark(right[1]),
                         mark(right[2]), mark(right[3]), verdict_word(report.verdict),
                         to_string(kind_of(report.verdict)), ranks_text(ranked_culprits(report)));
    INFO(id);
    CHECK(right[0]);
    CHECK(right[1]);
    CHECK(right[2]);
    CHECK(right[3]);
  }
  const auto line = [](const char* what, const Score& score) {
    return fmt::format("{:<10} {:>3} / {}\n", what, score.right, score.total);
  };
  std::cout << library << " (verdict, culprits, place, fix):\n"
            << (std::getenv("ROLLCALL_VERBOSE") != nullptr ? table : "") << line("verdicts", verdicts)
            << line("culprits", culprits) << line("places", places) << line("fixes", fixes);
}

}  // namespace

TEST_CASE("every failure of the hang library is found, and every fix is one", "[hangs][conformance][fiber]") {
  check_library(hang_library);
}

TEST_CASE("failures nobody has reported yet are found as well", "[hangs][conformance][fiber]") {
  check_library(made_up_hangs);
}

TEST_CASE("numbering the ranks of a hang backwards renumbers the culprits and changes nothing else",
          "[hangs][fiber]") {
  const fs::path path =
      fs::temp_directory_path() / fmt::format("rollcall_renumbered_hang.{}.json", ::getpid());
  std::size_t count = 0;
  for (const std::string& id : hang_ids()) {
    const Report report = run_text(scenario::import_hang(hang_path(id), HangVariant::failing), id + ".json");
    if (kind_of(report.verdict) == FindingKind::duplicate_gpu ||
        kind_of(report.verdict) == FindingKind::stray_device) {
      continue;  // which rank owns a GPU depends on the rank's number
    }
    const nlohmann::json backwards = renumbered(read_hang(id));
    std::ofstream(path) << backwards.dump();
    const Report other = run_text(scenario::import_hang(path.string(), HangVariant::failing), id + ".json");
    INFO(id);
    CHECK(verdict_word(other.verdict) == verdict_word(report.verdict));
    const Rank last = read_hang(id).at("world_size").get<Rank>() - 1;
    std::vector<Rank> expected;
    for (const Rank rank : ranked_culprits(report)) {
      expected.push_back(last - rank);
    }
    CHECK(RankSet::of(ranked_culprits(other)) == RankSet::of(expected));
    ++count;
  }
  fs::remove(path);
  CHECK(count > 75);
}

TEST_CASE("the scenarios of the hang library are what importing it gives", "[hangs][hang-import]") {
  const char* bless = std::getenv("ROLLCALL_BLESS");
  std::size_t count = 0;
  for (const std::string& id : hang_ids()) {
    for (const HangVariant variant : {HangVariant::failing, HangVariant::fixed}) {
      const std::string text = scenario::import_hang(hang_path(id), variant);
      ++count;
      const fs::path path = scenario_path(id, variant);
      if (bless != nullptr && std::string(bless) == "1") {
        std::ofstream(path, std::ios::binary) << text;
      }
      INFO(path);
      CHECK(contents(path) == text);
    }
  }
  CHECK(static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator())) ==
        count);
}

TEST_CASE("every scenario of the hang library comes out as it says itself", "[hangs][fiber]") {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    INFO(entry.path());
    CHECK(run_text(contents(entry.path()), entry.path().filename().string()).unmet ==
          std::vector<std::string>{});
  }
}

}  // namespace rollcall::conformance::hang_library_test
