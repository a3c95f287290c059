// What NCCL did on a GPU, in tests/data/nccl_results, against what the simulator says that it does.

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/compare/claims.h"
#include "scenarios/compare/result_file.h"
#include "scenarios/compare/simulated_facts.h"
#include "scenarios/format/scenario.h"
#include "tests/catch.h"

namespace rollcall::nccl_results_test {
namespace {

namespace fs = std::filesystem;

const compare::Claim& claim_about(const std::vector<compare::Claim>& claims, std::string_view about) {
  const auto found = std::ranges::find(claims, about, &compare::Claim::about);
  REQUIRE(found != claims.end());
  return *found;
}

}  // namespace

TEST_CASE("scenarios do on a GPU what they do in the simulator", "[nccl][compare]") {
  const fs::path source(ROLLCALL_SOURCE_DIR);
  const fs::path results = source / "tests/data/nccl_results";
  int runs = 0;
  int same_verdicts = 0;
  for (const fs::directory_entry& file : fs::recursive_directory_iterator(results)) {
    const std::string name = fs::relative(file.path(), results).string();
    constexpr std::string_view ending = ".result.json";
    if (!name.ends_with(ending)) {
      continue;
    }
    const compare::Facts real = compare::read_result(file.path().string());
    const std::string path =
        (source / "scenarios" / (name.substr(0, name.size() - ending.size()) + ".json")).string();
    const auto ranks = static_cast<Rank>(real.ranks.size());
    const std::string written_for = scenario::load_scenario(path, {.world_size = ranks}).options.backend;
    const scenario::Scenario scenario =
        scenario::load_scenario(path, {.world_size = ranks, .backend = real.backend});
    const std::vector<compare::Claim> claims =
        compare::compare(compare::simulate(scenario).facts, real, written_for, scenario.options.cluster);
    for (const compare::Claim& claim : claims) {
      CAPTURE(name, claim.about, claim.simulated, claim.real, claim.because);
      CHECK(claim.judgement != compare::Claim::Judgement::differs);
    }
    same_verdicts += claim_about(claims, "verdict").judgement == compare::Claim::Judgement::agrees ? 1 : 0;
    ++runs;
  }
  CHECK(runs == 241);
  CHECK(same_verdicts == 203);
}

}  // namespace rollcall::nccl_results_test
