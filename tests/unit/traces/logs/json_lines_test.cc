#include "traces/logs/json_lines.h"

#include "tests/catch.h"
#include "traces/logs/job_evidence.h"

namespace rollcall::traces::json_lines_test {

TEST_CASE("lines of Docker, of loggers and of collectors are unpacked", "[job-log]") {
  const auto text_of = [](std::string_view line) { return unpack_json_lines(line).value().text; };
  CHECK(text_of(R"({"log":"a \"b\"\n","stream":"stderr","time":"2026-11-28T10:00:00.1Z"})") == "a \"b\"\n");
  CHECK(text_of(R"({"@timestamp":"2022-10-14 21:12:36.194","@message":"begin training epoch 2"})") ==
        "begin training epoch 2\n");
  CHECK(text_of(R"({"_PID":"7","MESSAGE":"step 3","PRIORITY":"6"})") == "step 3\n");
  CHECK(text_of(R"({"level":"error","rank":3,"msg":"first\nsecond"})") ==
        "[rank3]: first\n[rank3]: second\n");
  CHECK(text_of(R"({"rank":3,"msg":"[rank3]:[E1] late"})") == "[rank3]:[E1] late\n");
  CHECK(text_of(R"({"severity":"ERROR","jsonPayload":{"rank":1,"message":"late"}})") == "[rank1]: late\n");
  CHECK(text_of(R"({"severity":"ERROR","textPayload":"late"})") == "late\n");
}

TEST_CASE("a log without messages in objects is not unpacked", "[job-log]") {
  CHECK_FALSE(unpack_json_lines(""));
  CHECK_FALSE(unpack_json_lines("{'loss': 2.09, 'epoch': 0.35}\n"));
  CHECK_FALSE(unpack_json_lines("{\"loss\": 2.09}\n{\"msg\": 5}\n{\"msg\": \n{}\n"));
}

TEST_CASE("evidence in objects is at the line of its object", "[job-log]") {
  const std::string log =
      R"({"log":"Traceback (most recent call last):\n  File \"train.py\", line 12, in step\n","stream":"stderr"})"
      "\nbetween\n"
      R"({"log":"[rank1]:[E ProcessGroupNCCL.cpp:828] [Rank 1] Watchdog caught collective operation timeout: )"
      R"(WorkNCCL(SeqNum=4, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1809826 milliseconds\n"})"
      "\n";
  const auto facts = read_text_evidence(log, -1, "job.json").value();
  const auto late = std::ranges::find(facts, check::LogFact::Kind::timed_out, &check::LogFact::kind);
  REQUIRE(late != facts.end());
  CHECK(late->line == 3);
  CHECK(late->ranks == RankSet{1});
}

}  // namespace rollcall::traces::json_lines_test
