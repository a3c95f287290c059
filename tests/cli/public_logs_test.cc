// Logs that people have posted when their jobs hung or failed: wrapped by a terminal, cut, without the lines that would
// help most. tests/data/public_logs/truth.json has where each is from, and what it proves.

#include <nlohmann/json.hpp>

#include "tests/shell.h"

namespace rollcall::test::public_logs_test {
namespace {

using Json = nlohmann::json;

const std::string folder = ROLLCALL_SOURCE_DIR "/tests/data/public_logs";

}  // namespace

TEST_CASE("what people post of their jobs is judged by what it proves, and no further", "[cli]") {
  const Shell shell;
  const Json truths = Json::parse(contents(folder + "/truth.json"));
  for (const auto& [name, truth] : truths.items()) {
    CAPTURE(name);
    const Outcome outcome = shell.rollcall("diagnose '" + folder + "/" + name + "' --format json");
    CHECK(outcome.code == (truth.at("culprits").empty() ? 6 : 1));
    const Json report = Json::parse(outcome.out);
    CHECK(report.at("culprits") == truth.at("culprits"));
    CHECK(report.at("kind") == truth.at("kind"));
    CHECK(report.at("confidence") == truth.at("confidence"));
    CHECK_THAT(outcome.out, Contains(truth.at("says").get<std::string>()));
  }
}

TEST_CASE("a log of a job that went well is not taken for a scenario", "[cli]") {
  const Shell shell;
  shell.write("train.log", "{'loss': 2.09, 'epoch': 0.35}\n100%|####| 50/50\n");
  const Outcome outcome = shell.rollcall("train.log");
  CHECK_THAT(outcome.err, Contains("train.log is what a job left behind") && !Contains("scenario"));
}

TEST_CASE("a log whose lines are objects is not taken for a scenario", "[cli]") {
  const Shell shell;
  shell.write("job.json", R"({"log":"step 1\n","stream":"stdout","time":"2026-11-28T10:00:00Z"})"
                          "\n"
                          R"({"log":"step 2\n","stream":"stdout","time":"2026-11-28T10:00:01Z"})"
                          "\n");
  CHECK_THAT(shell.rollcall("job.json").err, Contains("job.json is what a job left behind"));
}

}  // namespace rollcall::test::public_logs_test
