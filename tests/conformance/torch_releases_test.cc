// Scenarios that do not name a PyTorch release give the same report on all of them.

#include <fstream>
#include <sstream>

#include "scenarios/format/scenario.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/run/runner.h"
#include "sim/torch/torch_traits.h"
#include "tests/catch.h"
#include "tests/shipped_scenarios.h"
#include "viz/json/json_report.h"
#include "viz/traces/chrome_trace.h"

namespace rollcall::scenario::torch_releases_test {

namespace {

constexpr Rank ranks_max = 1024;  // larger worlds take too long

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Scenarios with a matrix are left out.
std::optional<Scenario> loaded(const std::filesystem::path& path, TorchRelease torch) {
  try {
    return load_scenario(path.string(), {.torch = torch});
  } catch (const InvalidScenario&) {
    return std::nullopt;
  }
}

// Returns what a run of it says, call by call, without the release's name.
std::string told(const Scenario& scenario) {
  Report report = run(scenario, {.timeline = true});
  report.torch.clear();
  std::ostringstream timeline;
  viz::chrome_trace(report, timeline);
  return viz::json_report(report) + timeline.str();
}

// Every release words its refusals differently.
bool is_refused(const Scenario& scenario) {
  return kind_of(run(scenario, {}).verdict) == FindingKind::cpu_tensor;
}

// True for PyTorch's Join tutorial (the Counter, uneven inputs), and for the examples of Join and DDP.
bool is_of_join(const std::filesystem::path& path) {
  const std::string chapter = path.parent_path().filename();
  return chapter == "scenarios" || chapter == "join" || chapter == "ddp" || path.stem() == "ddp_zero_join";
}

}  // namespace

TEST_CASE("programs of Join and DDP make the same calls, with the same values, on every release",
          "[fiber][conformance]") {
  int compared = 0;
  for (const std::filesystem::path& path : test::shipped_examples()) {
    if (!is_of_join(path) || text_of(path).find("\"torch\": ") != std::string::npos) {
      continue;
    }
    const std::optional<Scenario> newest = loaded(path, newest_torch);
    for (const TorchTraits& torch : known_torch_releases()) {
      const std::optional<Scenario> scenario = loaded(path, torch.release);
      INFO(path.string() << " on torch " << torch.name);
      CHECK(scenario.has_value() == newest.has_value());
      if (scenario && newest && torch.release != newest_torch && !is_refused(*newest)) {
        CHECK(told(*scenario) == told(*newest));
        ++compared;
      }
    }
  }
  CHECK(compared > 50);
}

TEST_CASE("a scenario without a release ends as expected on every release", "[fiber][conformance]") {
  int tried = 0;
  for (const std::filesystem::path& path : test::shipped_scenarios()) {
    if (text_of(path).find("\"torch\": ") != std::string::npos) {
      continue;
    }
    for (const TorchTraits& torch : known_torch_releases()) {
      const std::optional<Scenario> scenario = loaded(path, torch.release);
      if (!scenario || scenario->options.world_size > ranks_max) {
        continue;
      }
      const Report report = run(*scenario, {});
      INFO(path.string() << " on torch " << torch.name);
      CHECK(report.torch == torch.name);
      CHECK(report.expected.value_or(true));
      ++tried;
    }
  }
  CHECK(tried > 300);
}

}  // namespace rollcall::scenario::torch_releases_test
