// Outcomes that timing decides: choices, threads, tensors touched too early, limits on waiting, calls that no rank
// waits for.

#include <string>
#include <vector>

#include "scenarios/run/explore_scenario.h"
#include "scenarios/run/runner.h"
#include "sim/explore/schedules.h"
#include "tests/catch.h"
#include "tests/unit/scenarios/format/scenario_texts.h"
#include "viz/rows/phrases.h"

namespace rollcall::scenario::races_test {
namespace {

Report run_text(const std::string& text) { return run(parse_scenario(text, "test.json")); }

std::string pair(const std::string& statements, const std::string& more = "") {
  return R"({"world_size": 2, "backend": "nccl", )" + more +
         R"("groups": {"a": [0, 1], "b": [0, 1]}, "program": [)" + statements + "]}";
}

// Returns text such as "race/op_mismatch 0-1".
std::string outcome_of(const Report& report) {
  const Finding* finding = finding_of(report.verdict);
  const std::string word(verdict_word(report.verdict));
  return finding == nullptr
             ? word
             : fmt::format("{}/{} {}", word, to_string(finding->kind), to_string(finding->culprits));
}

// Held back until rank 0 waits in the all_reduce, rank 1 makes its first call so late that rank 0 dies before the end.
const char* const rank_dies_after_its_call =
    R"({"world_size": 2, "backend": "gloo", "faults": [{"kind": "crash", "ranks": [0], "at": "3ms"}], "program": [
      {"store_add": "count", "value": 1}, {"compute": "2ms"}, {"all_reduce": {"numel": 2}}]})";

std::string outcome_of(const std::string& text) { return outcome_of(run_text(text)); }

}  // namespace

TEST_CASE("a choice whose branches do not fit together is a race", "[scenarios][fiber]") {
  const Report report = run_text(pair(
      R"({"choice": [[{"broadcast": {"numel": 8}}], [{"synchronize": true}]]}, {"all_reduce": {"numel": 1000}})"));
  CHECK(outcome_of(report) == "race/op_mismatch 0-1");
  CHECK(report.schedules == 4);
  CHECK(report.exhaustive);
  const auto& outcomes = std::get<Race>(report.verdict).outcomes;
  CHECK(outcomes ==
        std::vector<Outcome>{{"ok", FindingKind::ok, 2}, {"mismatch", FindingKind::op_mismatch, 2}});
}

TEST_CASE("a choice that makes no difference is none", "[scenarios][fiber]") {
  const Report good =
      run_text(pair(R"({"choice": [[{"compute": "1ms"}], [{"compute": "2ms"}]]}, {"barrier": {}})"));
  CHECK(outcome_of(good) == "ok");
  CHECK(good.schedules == 4);
  const Report bad = run_text(pair(
      R"({"choice": [[{"compute": "1ms"}], [{"compute": "2ms"}]]}, {"all_reduce": {"numel": "rank + 1"}})"));
  CHECK(outcome_of(bad) == "mismatch/numel_mismatch 0-1");
}

TEST_CASE("more schedules than can be tried are tried in part, and the report says so",
          "[scenarios][fiber]") {
  const Report report = run_text(pair(R"({"repeat": 10, "do": [{"choice": [[], []]}]})"));
  CHECK(report.schedules == sim::schedules_max);
  CHECK_FALSE(report.exhaustive);
}

TEST_CASE("threads that share a group race for the order of its calls", "[scenarios][fiber]") {
  CHECK(
      outcome_of(pair(R"({"parallel": [[{"all_reduce": {"numel": 4}}], [{"broadcast": {"numel": 4}}]]})")) ==
      "race/op_mismatch 0-1");
}

TEST_CASE("threads with groups of their own do not wait for each other", "[scenarios][fiber]") {
  const std::string threads =
      R"({"parallel": [[{"all_reduce": {"group": "a"}}, {"barrier": {"group": "a"}}],
                       [{"all_reduce": {"group": "b"}}, {"barrier": {"group": "b"}}]]})";
  const auto program = [&](const std::string& backend) {
    return R"({"world_size": 2, "groups": {"a": [0, 1], "b": [0, 1]}, )" + backend + R"(, "program": [)" +
           threads + "]}";
  };
  CHECK(outcome_of(program(R"("backend": "gloo")")) == "ok");
  // But if they share a stream, a call waits for calls that another thread has queued before it.
  CHECK(outcome_of(program(R"("backend": "nccl")")) == "race/order_crossing 0-1");
}

TEST_CASE("a tensor used before its call is waited for is a race, whenever the call completes",
          "[scenarios][fiber]") {
  const std::string call = R"({"all_reduce": "t", "value": 1, "numel": 4, "async_op": true, "as": "w"},
                              {"compute": "1s"}, )";
  CHECK(outcome_of(pair(call + R"({"free": "t"}, {"wait": "w"})")) == "race/free_before_wait 0-1");
  CHECK(outcome_of(pair(call + R"({"read": "t"}, {"wait": "w"})")) == "race/read_before_wait 0-1");
  CHECK(outcome_of(pair(call + R"({"add": "t", "value": 1}, {"wait": "w"})")) ==
        "race/write_before_wait 0-1");
  CHECK(outcome_of(pair(call + R"({"wait": "w"}, {"read": "t"}, {"free": "t"})")) == "ok");
  CHECK(outcome_of(pair(call + R"({"synchronize": true}, {"read": "t"}, {"wait": "w"})")) == "ok");
}

TEST_CASE("on gloo, a message is kept with its handle until its other end has come", "[scenarios][fiber]") {
  const auto on = [](const std::string& backend, const std::string& sends, const std::string& receives) {
    return outcome_of(R"({"world_size": 2, "backend": ")" + backend + R"(", "programs": {"0": [)" + sends +
                      R"(, {"barrier": {}}], "1": [)" + receives + R"(, {"barrier": {}}]}})");
  };
  const auto gloo = [&](const std::string& sends, const std::string& receives) {
    return on("gloo", sends, receives);
  };
  const std::string recv = R"({"recv": {"numel": 4, "src": 0}})";
  const std::string kept = R"({"isend": {"numel": 4, "dst": 1}, "as": "w"})";
  const std::string dropped = R"({"isend": {"numel": 4, "dst": 1}})";
  CHECK(gloo(kept + R"(, {"wait": "w"})", recv) == "ok");
  CHECK(gloo(kept, recv) == "ok");
  CHECK(gloo(dropped, recv) == "race/drop_before_wait 0");
  CHECK(gloo(kept + R"(, {"drop": "w"})", recv) == "race/drop_before_wait 0");
  CHECK(gloo(kept + R"(, {"wait": "w"}, {"drop": "w"})", recv) == "ok");
  CHECK(gloo(kept + "," + kept + R"(, {"wait": "w"})", recv + "," + recv) == "race/drop_before_wait 0");
  CHECK(gloo(kept + R"(, {"wait": "w"},)" + kept + R"(, {"wait": "w"})", recv + "," + recv) == "ok");
  CHECK(gloo(R"({"batch_isend_irecv": [{"isend": {"numel": 4, "dst": 1}}]})", recv) ==
        "race/drop_before_wait 0");
  CHECK(gloo(dropped + R"(, {"synchronize": true})", recv) == "ok");  // which has all handles
  // Who came before is decided by time, and not by the order in which ranks run.
  const std::string late = R"({"compute": "1ms"}, )";
  CHECK(gloo(late + dropped, recv) == "ok");
  CHECK(gloo(dropped, late + recv) == "race/drop_before_wait 0");
  CHECK(gloo(R"({"recv": {"numel": 4, "src": 1}})", R"({"isend": {"numel": 4, "dst": 0}})") ==
        "race/drop_before_wait 1");
  CHECK(gloo(R"({"irecv": {"numel": 4, "src": 1}})", late + R"({"send": {"numel": 4, "dst": 0}})") ==
        "race/drop_before_wait 0");
  CHECK(on("nccl", dropped, late + recv) == "ok");
}

TEST_CASE("a stream that is not ordered after a call must not touch its tensor", "[scenarios][fiber]") {
  const auto nccl = [](const std::string& statements) { return outcome_of(pair(statements)); };
  const std::string on_stream = R"({"all_reduce": "t", "value": 1, "numel": 4, "stream": "s"}, )";
  CHECK(nccl(on_stream + R"({"write": "t"})") == "race/write_before_wait 0-1");
  CHECK(nccl(on_stream + R"({"print": "{t}"})") == "race/read_before_wait 0-1");
  CHECK(nccl(on_stream + R"({"wait_stream": "s"}, {"write": "t"})") == "ok");
  CHECK(nccl(on_stream + R"({"wait_stream": "s", "stream": "u"}, {"wait_stream": "u"}, {"write": "t"})") ==
        "ok");
  CHECK(nccl(on_stream + R"({"wait_stream": "s", "stream": "u"}, {"write": "t"})") ==
        "race/write_before_wait 0-1");
  CHECK(nccl(on_stream + R"({"record_event": "e", "stream": "s"}, {"wait_event": "e"}, {"read": "t"})") ==
        "ok");
  CHECK(nccl(R"({"record_event": "e", "stream": "s"}, )" + on_stream +
             R"({"wait_event": "e"}, {"read": "t"})") == "race/read_before_wait 0-1");
  CHECK(nccl(on_stream + R"({"synchronize": true}, {"write": "t"})") == "ok");

  const std::string pending = R"({"all_reduce": "t", "value": 1, "numel": 4, "async_op": true, "as": "w"}, )";
  CHECK(nccl(pending + R"({"wait": "w", "stream": "s"}, {"read": "t"})") == "race/read_before_wait 0-1");
  CHECK(nccl(pending + R"({"wait": "w", "stream": "s"}, {"wait": "w"}, {"read": "t"})") == "ok");
  // Where calls block the host, all that follows is ordered.
  CHECK(outcome_of(pair(on_stream + R"({"write": "t"})", R"("blocking_wait": true, )")) == "ok");

  const Report report = run_text(pair(on_stream + R"({"write": "t"})"));
  CHECK(finding_of(report.verdict)->headline ==
        "'t' on ranks 0-1 is written on stream 'default', which does not wait for all_reduce #0 on world");
}

TEST_CASE("what a call only reads may be read meanwhile, but not written", "[scenarios][fiber]") {
  const auto program = [](const std::string& statement) {
    return R"({"world_size": 2, "backend": "gloo", "programs": {
        "0": [{"isend": "t", "value": 1, "dst": 1, "as": "w"}, )" +
           statement + R"(, {"wait": "w"}], "1": [{"recv": {"src": 0}}]}})";
  };
  CHECK(outcome_of(program(R"({"read": "t"})")) == "ok");
  CHECK(outcome_of(program(R"({"write": "t"})")) == "race/write_before_wait 0");
}

TEST_CASE("a call on the tensor of a call that is not over is a race", "[scenarios][fiber]") {
  const std::string first = R"({"all_reduce": {"tensor": "t", "numel": 4}, "async_op": true, "as": "a"}, )";
  const auto second = [&first](const std::string& statement) {
    return first + statement + R"(, {"wait": "a"})";
  };
  const auto gloo = [](const std::string& statements) {
    return outcome_of(R"({"world_size": 2, "backend": "gloo", "program": [)" + statements + "]}");
  };
  const auto nccl = [](const std::string& statements) { return outcome_of(pair(statements)); };
  const std::string again = R"({"all_reduce": {"tensor": "t"}, "async_op": true, "as": "b"})";
  CHECK(gloo(second(R"({"all_reduce": {"tensor": "t"}})")) == "race/write_before_wait 0-1");
  CHECK(gloo(second(again)) == "race/write_before_wait 0-1");
  CHECK(gloo(second(R"({"all_reduce": {"tensor": "u", "numel": 4}})")) == "ok");
  CHECK(gloo(first + R"({"wait": "a"}, {"broadcast": {"tensor": "t"}, "src": 0})") == "ok");

  // A communicator of nccl runs its calls in order, but not those of another one.
  CHECK(nccl(second(again)) == "ok");
  CHECK(nccl(first + again + R"(, {"wait": "b"}, {"read": "t"})") == "ok");
  CHECK(nccl(first + again + R"(, {"wait": "a"}, {"read": "t"})") == "race/read_before_wait 0-1");
  CHECK(nccl(second(R"({"all_reduce": {"tensor": "t", "group": "a"}, "async_op": true, "as": "b"})")) ==
        "race/write_before_wait 0-1");

  const Report report = run_text(pair(second(R"({"all_gather": {"tensor": "t", "group": "a"}})")));
  CHECK(finding_of(report.verdict)->headline ==
        "'t' on ranks 0-1 is read by all_gather before all_reduce #0 on world is waited for");
  CHECK(finding_of(report.verdict)->advice ==
        "wait for the handle 'a' first, or give each call a tensor of its own");
}

TEST_CASE("messages under way may share a tensor only if all of them send it", "[scenarios][fiber]") {
  const auto both = [](const std::string& backend, const std::string& statements) {
    return outcome_of(R"({"world_size": 2, "backend": ")" + backend + R"(", "program": [)" + statements +
                      "]}");
  };
  const std::string isend = R"({"isend": {"tensor": "t", "numel": 4}, "dst": "1 - rank", "as": "s"}, )";
  const std::string irecv = R"({"irecv": {"tensor": "t", "numel": 4}, "src": "1 - rank", "as": "r"}, )";
  const std::string other = R"({"irecv": {"tensor": "u", "numel": 4}, "src": "1 - rank", "as": "r"}, )";
  const std::string waits = R"({"wait": "s"}, {"wait": "r"})";
  CHECK(both("gloo", isend + irecv + waits) == "race/write_before_wait 0-1");
  CHECK(both("gloo", isend + other + waits) == "ok");
  const auto batch = [](const std::string& received) {
    return R"({"batch_isend_irecv": [{"isend": {"tensor": "t", "numel": 4}, "dst": "1 - rank"},
                                     {"irecv": {"tensor": ")" +
           received + R"(", "numel": 4}, "src": "1 - rank"}],
               "as": "w"}, {"wait": "w"})";
  };
  for (const std::string backend : {"gloo", "nccl"}) {
    CHECK(both(backend, batch("t")) == "race/write_before_wait 0-1");
    CHECK(both(backend, batch("u")) == "ok");
    CHECK(both(backend, batch("u") + "," + batch("u")) == "ok");
  }
}

TEST_CASE("the root of a broadcast may read its tensor meanwhile", "[scenarios][fiber]") {
  const Report report = run_text(pair(
      R"({"broadcast": {"tensor": "t", "numel": 4}, "src": 0, "async_op": true, "as": "w"},
         {"read": "t"}, {"wait": "w"})"));
  CHECK(outcome_of(report) == "race/read_before_wait 1");
}

TEST_CASE("a slow rank against a limit is a race, and the numbers are told", "[scenarios][fiber]") {
  const auto program = [](const std::string& limit) {
    return R"({"world_size": 4, "timeout": ")" + limit + R"(", "program": [
        {"if": "rank == 0", "do": [{"compute": "2700s"}]}, {"barrier": {}}]})";
  };
  const Report report = run_text(program("1800s"));
  CHECK(outcome_of(report) == "race/watchdog_timeout 0");
  CHECK(finding_of(report.verdict)->headline ==
        "rank 0 reaches barrier #0 on world after ranks 1-3 have given up");
  CHECK(finding_of(report.verdict)->cause.starts_with("no rank is missing: rank 0 arrives after "));
  CHECK(outcome_of(program("1h")) == "ok");
}

TEST_CASE("a run says how many of its waits timed out, though the program went on", "[scenarios][fiber]") {
  const Report report = run_text(R"({"world_size": 2, "backend": "gloo", "program": [
    {"if": "rank == 1", "do": [{"compute": "9s"}]},
    {"try": {"do": [{"monitored_barrier": {"timeout": "5s"}}], "except": [{"print": "slow"}]}}]})");
  CHECK(outcome_of(report) == "ok");
  CHECK(viz::success_phrase(report) == "2 ranks finished, 1 call in 9 s of simulated time; 1 wait timed out");
}

TEST_CASE("a rank that is slow and then never comes is missing", "[scenarios][fiber]") {
  CHECK(outcome_of(R"({"world_size": 4, "timeout": "10s", "program": [
      {"if": "rank == 0", "do": [{"compute": "60s"}, {"exit": true}]}, {"barrier": {}}]})") ==
        "deadlock/missing_participant 0");
}

TEST_CASE("a call that never completes and that nobody waits for is a leak", "[scenarios][fiber]") {
  const Report report = run_text(R"({"world_size": 2, "communicators": "eager", "programs": {
      "0": [{"isend": {"dst": 1}}], "1": []}})");
  CHECK(outcome_of(report) == "resource_leak/work_never_completed 0-1");
  CHECK(finding_of(report.verdict)->suspects == std::vector<Rank>{0, 1});
  const std::string without_3 =
      R"("world_size": 4, "program": [{"if": "rank != 3", "do": [{"all_reduce": {"async_op": true}}]}]})";
  CHECK(outcome_of(R"({"communicators": "eager", )" + without_3) == "resource_leak/work_never_completed 3");
  CHECK(outcome_of("{" + without_3) == "deadlock/missing_participant 3");  // a first call holds up its host
}

TEST_CASE("a call that cannot complete is a leak, however far the GPUs were when the processes ended",
          "[scenarios][fiber]") {
  const auto text = [](const std::string& ending) {
    return R"({"world_size": 3, "inputs": [1, 2, 3], "program": [
        {"for_each_input": "i", "do": [{"all_reduce": {"async_op": true}}]})" +
           ending + "]}";
  };
  const Report at_once = run_text(text(""));  // the GPUs have not begun
  CHECK(outcome_of(at_once) == "resource_leak/work_never_completed 0");
  CHECK(at_once.simulated_time == 0);
  CHECK(outcome_of(text(R"(, {"compute": "1s"})")) == "resource_leak/work_never_completed 0");
  CHECK(outcome_of(
            R"({"world_size": 3, "program": [{"repeat": 3, "do": [{"all_reduce": {"async_op": true}}]}]})") ==
        "ok");
}

TEST_CASE("a failed check is a wrong result, unless the program caught it", "[scenarios][fiber]") {
  const Report report = run_text(pair(R"({"fill": "t", "value": "rank"}, {"check": "t", "value": 0})"));
  CHECK(outcome_of(report) == "wrong_result/value 1");
  CHECK(std::get<WrongResult>(report.verdict).values.front().got == "1");
  CHECK(outcome_of(pair(R"({"fill": "t", "value": "rank"},
      {"try": {"do": [{"check": "t", "value": 0}], "except": [{"print": "{error}"}]}})")) == "ok");
}

TEST_CASE("of a sum that is too large, whoever gave most is the first suspect", "[scenarios][fiber]") {
  const Report report = run_text(pair(R"({"fill": "t", "value": "4 + 3 * rank"}, {"all_reduce": "t"},
      {"check": "t", "value": 10})"));
  CHECK(outcome_of(report) == "wrong_result/value 0-1");
  CHECK(finding_of(report.verdict)->suspects == std::vector<Rank>{1, 0});
}

TEST_CASE("a root outside of the group is a mismatch of its callers", "[scenarios][fiber]") {
  CHECK(outcome_of(R"({"world_size": 4, "groups": {"high": [2, 3]}, "programs": {"0-1": [],
      "2-3": [{"broadcast": {"group": "high", "src": 0}}]}})") == "mismatch/root_not_in_group 2-3");
}

TEST_CASE("branches and threads are lists of lists", "[scenarios]") {
  CHECK(test::problem(test::quartet(R"({"choice": [[]]})")) ==
        "/program/0/choice: expected a list of at least two branches, each a list of statements");
  CHECK(test::problem(test::quartet(R"({"parallel": [[], [{"parallel": [[], []]}]]})")) ==
        "/program/0/parallel/1/0: \"parallel\" inside \"parallel\" is not supported by this version");
  CHECK(test::problem(test::quartet(R"({"repeat": 2, "do": [{"choice": [[{"break": true}], []]}]})")) ==
        "/program/0/do/0/choice/0/0: \"break\" is outside any loop");
}

TEST_CASE("a tensor that a send nobody receives still reads holds up who writes to it",
          "[scenarios][fiber]") {
  CHECK(outcome_of(R"({"world_size": 2, "backend": "nccl", "communicators": "eager", "programs": {
    "0": [{"isend": {"tensor": "t", "numel": 8, "value": 1}, "dst": 1, "as": "sent"}, {"fill": "t", "value": 2}],
    "1": []}})") == "race/write_before_wait 0");
}

TEST_CASE("threads of a rank that wait for one call are let through it together", "[scenarios][fiber]") {
  // Both threads wait for the second gather, whose root is missing: the others get through, as on Gloo.
  const Report report = run_text(R"({"world_size": 3, "backend": "gloo", "program": [
      {"if": "rank == 2", "do": [{"all_reduce": {"numel": 17}}]},
      {"parallel": [[{"gather": {"numel": 3}, "async_op": true, "as": "w"}, {"wait": "w"}],
                    [{"gather": {"numel": 3}, "async_op": true, "as": "w"}, {"wait": "w"}]]}]})");
  CHECK(outcome_of(report) == "mismatch/op_mismatch 2");
}

TEST_CASE("where a rank dies at a time, a search that holds calls back also counts the run that does not",
          "[explore][scenarios][fiber]") {
  const Scenario scenario = parse_scenario(rank_dies_after_its_call, "test.json");
  CHECK(outcome_of(run(scenario)) == "ok");
  const Report report = explore(scenario, {});
  REQUIRE(report.search);
  CHECK(report.search->outcomes ==
        std::vector<Outcome>{{"ok", FindingKind::ok, 1}, {"deadlock", FindingKind::rank_crashed, 1}});
  CHECK_FALSE(report.exhaustive);
}

TEST_CASE("a model whose source of parameters a foreign call has given is refused as on the backend",
          "[scenarios][fiber]") {
  for (const std::string backend : {"gloo", "nccl"}) {
    const Report report =
        run_text(R"({"world_size": 2, "backend": ")" + backend +
                 R"(", "objects": {"model": {"kind": "ddp", "parameters": [6, 3]}}, "program": [
      {"if": "rank == 0", "do": [{"join": ["model"], "do": []}], "else": [{"all_reduce": {"numel": 1, "value": 0}},
       {"all_reduce": {"numel": 1, "dtype": "int64", "reduce_op": "MAX", "value": 5}}]}]})");
    CHECK_THAT(finding_of(report.verdict)->headline, Contains("invalid root"));
  }
}

}  // namespace rollcall::scenario::races_test
