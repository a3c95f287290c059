// docs/uneven-steps.md: what uneven ranks cost, according to the examples.

#include <string>

#include "scenarios/format/scenario.h"
#include "scenarios/run/runner.h"
#include "tests/catch.h"
#include "tests/contents.h"
#include "viz/rows/rank_profile.h"
#include "viz/text/text_report.h"

namespace rollcall::predict::uneven_steps_test {
namespace {

const std::string root = ROLLCALL_SOURCE_DIR;
const std::string folder = "scenarios/examples/time/";

std::string source_of(const std::string& name) {
  return test::contents(root + "/" + folder + name + ".json");
}

Report run(const std::string& name, const std::string& text) {
  return scenario::run(scenario::parse_scenario(text, folder + name + ".json"), {.timeline = true});
}
Report run(const std::string& name) { return run(name, source_of(name)); }

// Returns the GPU seconds that a step of 1,024 ranks loses to the longer sequences of one rank.
double lost_by(const std::string& name, const std::string& longer) {
  std::string even = source_of(name);
  even.replace(even.find(longer), longer.size(), "16384");
  const auto step = [](const Report& report) {
    const viz::RunProfile profile = viz::profile_of(report);
    return static_cast<double>(profile.total / profile.steps) / 1e9;
  };
  return (step(run(name)) - step(run(name, even))) * 1024;
}

}  // namespace

TEST_CASE("docs/uneven-steps.md says what the examples say", "[predict][fiber]") {
  const std::string page = test::contents(root + "/docs/uneven-steps.md");
  for (const char* name : {"longer_sequences", "dropped_batches"}) {
    const Report report = run(name);
    CHECK_THAT(page, Contains(viz::profile_text(report, viz::profile_of(report))));
  }
  const Report join = run("join_costs");
  CHECK_THAT(page, Contains(viz::text_report(join, {})));
  const viz::RunProfile joined = viz::profile_of(join);
  const viz::RunProfile dropped = viz::profile_of(run("dropped_batches"));
  CHECK(joined.total / joined.steps / 1000 == 52'382);
  CHECK((joined.total / joined.steps - dropped.total / dropped.steps) / 1000 == 18);
  CHECK(static_cast<double>(dropped.total) / static_cast<double>(joined.total) == Approx(0.9).margin(0.001));
}

TEST_CASE("one rank of 1,024 with sequences 5 % longer costs all of them", "[predict][fiber]") {
  CHECK(lost_by("longer_sequences", "rank == 700 ? 17204 : 16384") == Approx(2.66).margin(0.01));
}

}  // namespace rollcall::predict::uneven_steps_test
