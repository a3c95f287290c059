// `rollcall explore`, and runs that follow a schedule, as users see them.

#include <cstdint>
#include <nlohmann/json.hpp>

#include <string>

#include "tests/catch.h"
#include "tests/shell.h"

namespace rollcall::test::cli_explore_test {
namespace {
using Json = nlohmann::json;

// A finalizer that makes a collective, before or after the step.
constexpr const char* finaliser = R"({ "version": 1, "name": "gc", "world_size": 2, "program": [
  { "choice": [ [ { "barrier": {} }, { "all_reduce": { "numel": 8 } } ],
                [ { "all_reduce": { "numel": 8 } }, { "barrier": {} } ] ] } ] })";

std::string last_word(const std::string& text) { return text.substr(text.rfind(' ') + 1); }

}  // namespace

TEST_CASE("explore reports the first failure, all outcomes, and how to see each again",
          "[cli][explore][fiber]") {
  const Shell shell;
  shell.write("gc.json", finaliser);
  const Outcome outcome = shell.rollcall("explore gc.json --format json");
  CHECK(outcome.code == 1);
  const Json report = Json::parse(outcome.out);
  CHECK(report["verdict"] == "race");
  CHECK(report["exhaustive"] == true);
  CHECK(report["schedules"] == 4);
  CHECK(report["outcomes"] == Json::parse(R"([{"verdict": "ok", "kind": "ok", "count": 2},
                                              {"verdict": "mismatch", "kind": "op_mismatch", "count": 2}])"));
  for (const Json& failure : report["failures"]) {
    const std::string replay = failure["replay"];
    const Outcome again = shell.rollcall(replay.substr(replay.find(' ') + 1) + " --format json");
    CHECK(again.code == 1);
    const Json repeated = Json::parse(again.out);
    CHECK(repeated["verdict"] == failure["verdict"]);
    CHECK(repeated["headline"] == failure["headline"]);
    CHECK(repeated["replay"] == replay);
  }
}

TEST_CASE("a scenario without decisions is proven by one schedule", "[cli][explore][fiber]") {
  const Shell shell;
  shell.write("plain.json",
              R"({ "version": 1, "world_size": 4, "program": [ { "all_reduce": { "numel": 8 } } ] })");
  const Outcome outcome = shell.rollcall("explore plain.json");
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("1 x ok; nothing depends on timing"));
}

TEST_CASE("a schedule that no longer fits, or is damaged, is refused before anything is reported",
          "[cli][explore][fiber]") {
  const Shell shell;
  shell.write("gc.json", finaliser);
  const Json report = Json::parse(shell.rollcall("explore gc.json --format json").out);
  const std::string schedule = last_word(report["replay"]);
  shell.write("gc.json", R"({ "version": 1, "world_size": 2, "program": [ { "barrier": {} } ] })");
  const Outcome changed = shell.rollcall("run gc.json --schedule " + schedule);
  CHECK(changed.code == 4);
  CHECK(changed.out.empty());
  CHECK_THAT(changed.err,
             Contains("the schedule no longer fits: it was made of 2 decisions, and this run makes 0"));
  const Outcome damaged = shell.rollcall("run gc.json --schedule " + schedule.substr(1));
  CHECK(damaged.code == 4);
  CHECK_THAT(damaged.err, Contains("damaged") || Contains("not a schedule"));
}

TEST_CASE("explore refuses a shard that is none", "[cli][explore]") {
  const Shell shell;
  shell.write("gc.json", finaliser);
  for (const char* shard : {"0/2", "3/2", "1", "1/2x", "-1/2"}) {
    const Outcome outcome = shell.rollcall("explore gc.json --shard " + std::string(shard));
    CHECK(outcome.code == 4);
  }
}

TEST_CASE("the parts of a search, joined, are the search", "[cli][explore][fiber]") {
  const Shell shell;
  shell.write("gc.json", finaliser);
  const Json whole = Json::parse(shell.rollcall("explore gc.json --format json").out);
  shell.rollcall("explore gc.json --format json --shard 1/2 -o one.json");
  shell.rollcall("explore gc.json --format json --shard 2/2 -o two.json");
  const Outcome outcome = shell.rollcall("explore --merge two.json one.json --format json");
  CHECK(outcome.code == 1);
  const Json merged = Json::parse(outcome.out);
  CHECK(merged["schedules"] == whole["schedules"]);
  CHECK(merged["exhaustive"] == true);
  std::int64_t wrong = 0;
  for (const Json& each : merged["outcomes"]) {
    wrong += each["verdict"] == "mismatch" ? each["count"].get<std::int64_t>() : 0;
  }
  CHECK(wrong == 2);
  CHECK(Json::parse(shell.rollcall("explore --merge one.json --format json").out)["exhaustive"] == false);
  CHECK(shell.rollcall("explore --merge one.json one.json").code == 4);
  CHECK(shell.rollcall("explore --merge gc.json").code == 4);
}

TEST_CASE("minimize writes a scenario with the same verdict", "[cli][minimize][fiber]") {
  const Shell shell;
  shell.write("uneven.json",
              R"({ "version": 1, "name": "uneven", "world_size": 8, "inputs": [5, 6, 6, 6, 6, 6, 6, 6],
    "program": [ { "print": "hello" }, { "for_each_input": "x", "do": [ { "all_reduce": { "numel": 9 } } ] } ] })");
  const Outcome outcome = shell.rollcall("minimize uneven.json -o small.json");
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, Contains("2 of 8 ranks and 2 of 3 statements"));
  CHECK(shell.rollcall("run small.json").code == 0);
  CHECK(shell.rollcall("minimize small.json -q").out.find("world_size\": 2") != std::string::npos);
  shell.write("fine.json", R"({ "version": 1, "world_size": 2, "program": [ { "barrier": {} } ] })");
  CHECK(shell.rollcall("minimize fine.json").code == 4);
}

TEST_CASE("what minimize makes of a race that only other schedules show is a test that passes",
          "[cli][minimize][fiber]") {
  const Shell shell;
  shell.write("race.json", R"({ "version": 1, "name": "race", "world_size": 3, "backend": "gloo", "program": [
    { "if": "rank == 0", "do": [
        { "recv": "t", "numel": 1, "dtype": "int64" }, { "item": "t", "as": "first" },
        { "recv": "t", "numel": 1, "dtype": "int64" }, { "if": "first == 2", "do": [ { "exit": true } ] } ],
      "else": [ { "send": "t", "numel": 1, "dtype": "int64", "value": "rank", "dst": 0 } ] },
    { "barrier": {} } ] })");
  CHECK(shell.rollcall("minimize race.json -o small.json").code == 0);
  CHECK(shell.rollcall("test small.json").code == 0);
  const Outcome once = shell.rollcall("run small.json");
  CHECK(once.code == 1);
  CHECK_THAT(once.out, Contains("expected race, got ok; `rollcall test` and `rollcall explore` also try"));
}

TEST_CASE("explore counts no schedule twice, and never says that fewer are possible",
          "[cli][explore][fiber]") {
  const Shell shell;
  shell.write("choice.json", R"({ "version": 1, "world_size": 2, "backend": "gloo", "program": [
    { "choice": [ [ { "compute": "1ms" } ], [ { "print": "b" } ] ] } ] })");
  const Outcome drawn = shell.rollcall("explore choice.json --scheduler random --schedules 9");
  CHECK_THAT(drawn.out, Contains("9 x ok; about 4 schedules are possible") &&
                            Contains("schedules were drawn at random: 9 runs, 4 different schedules"));
  shell.write("threads.json", R"({ "version": 1, "world_size": 2, "backend": "gloo", "program": [
    { "parallel": [ [ { "all_reduce": { "numel": 1 } } ], [ { "all_reduce": { "numel": 2 } } ] ] } ] })");
  const Json report = Json::parse(shell.rollcall("explore threads.json --format json").out);
  CHECK(report["coverage"]["estimated_schedules"] >= report["coverage"]["distinct_schedules"]);
}

TEST_CASE("the report of a search shows the line that it points at", "[cli][explore][fiber]") {
  const Shell shell;
  shell.write("hang.json",
              "{ \"version\": 1, \"world_size\": 2, \"program\": [\n"
              "  { \"if\": \"rank == 0\", \"do\": [\n"
              "    {\n"
              "      \"barrier\": {}\n"
              "    } ] } ] }\n");
  // A brace alone says nothing: what follows it does.
  for (const char* command : {"explore", "run"}) {
    CHECK_THAT(shell.rollcall(std::string(command) + " hang.json").out,
               Contains("--> hang.json:4:7\n") && Contains("4 |      \"barrier\": {}\n"));
  }
}

TEST_CASE("explore can disturb a scenario instead, and says what it survives", "[cli][explore][fiber]") {
  const Shell shell;
  shell.write("even.json", R"({ "version": 1, "name": "even", "world_size": 2, "inputs": 3, "program": [
    { "for_each_input": "x", "do": [ { "all_reduce": { "numel": 9 } } ] } ] })");
  const Outcome text = shell.rollcall("explore --what-if even.json");
  CHECK(text.code == 0);
  CHECK_THAT(text.out, Contains("even: verdict ok if undisturbed; it survives 2 of 10 disturbances"));
  const Json found = Json::parse(shell.rollcall("explore --what-if even.json --format json").out);
  CHECK(found["survived"] == 2);
  CHECK(found["disturbances"].size() == 10);
}

TEST_CASE("a failure that explore has found is what test tries first, until it is gone",
          "[cli][explore][fiber]") {
  const Shell shell;
  shell.write("a.json", R"({ "version": 1, "world_size": 2, "program": [ { "barrier": {} } ] })");
  // The default run succeeds, and `run` tries no other order of store calls.
  const std::string late = R"({ "version": 1, "name": "late", "world_size": 2, "backend": "gloo", "program": [
    { "if": "rank == 0", "do": [ { "store_set": "id", "value": "1" } ] }, { "barrier": {} },
    { "if": "rank == 0", "do": [ { "store_set": "id", "value": "2" } ],
      "else": [ { "store_get": "id", "want": "2" } ] } ] })";
  shell.write("late.json", late);
  CHECK(shell.rollcall("test .").code == 0);
  CHECK(shell.rollcall("explore late.json").code == 1);
  const Outcome failing = shell.rollcall("test . -j 1");
  CHECK(failing.code == 1);
  CHECK_THAT(failing.out, StartsWith("FAILED  ./late.json") || StartsWith("FAILED  late.json"));
  CHECK_THAT(failing.out, Contains("--schedule"));
  std::string mended = late;
  mended.replace(mended.find(R"({ "barrier": {} })"), 17, R"({ "barrier": {} }, { "barrier": {} })");
  mended.replace(mended.find(R"("else": [)"), 9, R"("else": [ { "store_wait": ["new"] }, )");
  mended.replace(mended.find(R"("value": "2" } ])"), 16,
                 R"("value": "2" }, { "store_set": "new", "value": "1" } ])");
  shell.write("late.json", mended);
  CHECK(shell.rollcall("test .").code == 0);
  shell.write("late.json", late);
  CHECK(shell.rollcall("test .").code == 0);  // forgotten
}

TEST_CASE("a search proves how a rank ends that receives from anyone beside named ranks",
          "[cli][explore][fiber]") {
  const Shell shell;
  const auto explored = [&shell](const std::string& name) {
    return Json::parse(
        shell.rollcall("explore --format json '" ROLLCALL_SOURCE_DIR "/tests/data/explore/" + name + ".json'")
            .out);
  };
  const Json mixed = explored("anyone_before_named");
  CHECK(mixed["exhaustive"] == true);
  CHECK(mixed["outcomes"].size() == 2);
  CHECK(explored("anyone_under_another_tag")["exhaustive"] == true);
}

TEST_CASE("a search with a checkpoint goes on where it was ended, and has the same result",
          "[cli][explore][fiber]") {
  const Shell shell;
  shell.write("gc.json", finaliser);
  const Json whole = Json::parse(shell.rollcall("explore gc.json --format json").out);
  const std::string command = "explore gc.json --checkpoint kept.json --format json";
  const Outcome first = shell.rollcall(command);
  CHECK(first.code == 1);
  CHECK(Json::parse(first.out)["schedules"] == whole["schedules"]);
  CHECK(Json::parse(first.out)["exhaustive"] == true);
  Json kept = Json::parse(contents(shell.path("kept.json")));
  CHECK(kept["parts"].size() == 16);
  kept["parts"].erase("3");
  kept["parts"].erase("7");
  shell.write("kept.json", kept.dump());
  CHECK(Json::parse(shell.rollcall(command).out) == Json::parse(first.out));
  CHECK(shell.rollcall(command + " --scheduler random").code == 4);
  CHECK(shell.rollcall("explore gc.json --checkpoint gc.json").code == 4);
}

}  // namespace rollcall::test::cli_explore_test
