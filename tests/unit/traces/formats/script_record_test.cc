
#include "traces/formats/script_record.h"
#include "tests/catch.h"

namespace rollcall::traces::script_record_test {
namespace {

const std::string header = R"({"rollcall_record":1,"rank":1,"world_size":4,"mode":"live"})"
                           "\n";
const std::string call =
    R"({"call":0,"op":"all_reduce","group":0,"numel":[3],"dtype":"float32","reduce":"SUM",)"
    R"("site":{"file":"train.py","line":7,"function":"main"}})"
    "\n";

}  // namespace

TEST_CASE("a record that stops in the middle of a line holds what came before", "[traces][record]") {
  const ScriptRank rank = read_script_rank(header + call + "[\"c\",0]\n[\"c\",0,1]\n[\"w\",");
  CHECK(rank.rank == 1);
  REQUIRE(rank.calls.size() == 1);
  CHECK(rank.calls[0].given == std::vector<std::int64_t>{3});
  CHECK(rank.calls[0].site.line == 7);
  REQUIRE(rank.events.size() == 2);
  CHECK(rank.events[0].handle == -1);
  CHECK(rank.events[1].handle == 1);
  CHECK(rank.end.how == ScriptEnd::How::unknown);
}

TEST_CASE("a call of a record that has raised says so", "[traces][record]") {
  const ScriptRank rank = read_script_rank(header + call + "[\"c\",0]\n[\"x\"]\n[\"c\",0]\n");
  REQUIRE(rank.events.size() == 2);
  CHECK(rank.events[0].has_raised);
  CHECK_FALSE(rank.events[1].has_raised);
}

TEST_CASE("a record says when the backend gave up, and which tensors were used early", "[traces][record]") {
  const ScriptRank rank = read_script_rank(
      header + call + "[\"c\",0,7]\n" +
      R"({"touch":7,"of":"filled","access":"write","site":{"file":"train.py","line":8,"function":"main"}})" +
      "\n" + R"(["c",0])" + "\n" + R"(["x","RuntimeError","Timed out",false,true])" + "\n");
  REQUIRE(rank.events.size() == 3);
  CHECK(rank.events[1].kind == ScriptEvent::Kind::touch);
  CHECK(rank.events[1].handle == 7);
  REQUIRE(rank.touches.size() == 1);
  CHECK(rank.touches[rank.events[1].touch].writes);
  CHECK(rank.touches[0].site.line == 8);
  CHECK(rank.events[2].was_last_resort);
}

TEST_CASE("a thread's wait that never ends comes last in its record, and one that ends where it ended",
          "[traces][record]") {
  const ScriptRank rank =
      read_script_rank(header + call + "[\"c\",0,1]\n[\"o\",1]\n[\"c\",0,2]\n[\"o\",2]\n[\"w\",2]\n");
  REQUIRE(rank.events.size() == 4);
  CHECK(rank.events[2].kind == ScriptEvent::Kind::wait);
  CHECK(rank.events[2].handle == 2);
  CHECK(rank.events[3].kind == ScriptEvent::Kind::wait);
  CHECK(rank.events[3].handle == 1);
}

TEST_CASE("a thread's wait that raised is in its record where it did", "[traces][record]") {
  const ScriptRank rank =
      read_script_rank(header + call + "[\"c\",0,1]\n[\"o\",1]\n" +
                       R"(["x","RuntimeError","Timed out",false,true,1])" + "\n[\"c\",0]\n");
  REQUIRE(rank.events.size() == 3);
  CHECK(rank.events[1].kind == ScriptEvent::Kind::wait);
  CHECK(rank.events[1].was_last_resort);
  CHECK_FALSE(rank.events[2].has_raised);
}

TEST_CASE("what a script says of its end is more than what its process says", "[traces][record]") {
  const std::string raised = R"({"end":"raised","type":"ValueError","message":"bad"})"
                             "\n";
  const std::string process = "{\"process\":{\"exit\":1}}\n";
  CHECK(read_script_rank(header + raised + process).end.type == "ValueError");
  const ScriptRank left = read_script_rank(header + "{\"process\":{\"exit\":3}}\n");
  CHECK(left.end.how == ScriptEnd::How::exited);
  CHECK(left.end.code == 3);
  CHECK(read_script_rank(header + "{\"process\":{\"signal\":9}}\n").end.how == ScriptEnd::How::killed);
}

TEST_CASE("a record that makes no sense is refused with the byte", "[traces][record]") {
  CHECK_THROWS_AS(read_script_rank(header + "[\"c\",5]\n"), BadFile);
  CHECK_THROWS_AS(read_script_rank(header + "{\"call\":3,\"op\":\"barrier\"}\n"), BadFile);
  CHECK_THROWS_AS(read_script_rank("{\"rollcall_record\":2,\"rank\":0,\"world_size\":1}\n"), BadFile);
  CHECK_THROWS_AS(read_script_rank("{\"rollcall_record\":1,\"rank\":4,\"world_size\":4}\n"), BadFile);
  CHECK_THROWS_AS(read_script_rank(header + "nonsense\n"), BadFile);
}

TEST_CASE("lines of other versions are passed over", "[traces][record]") {
  CHECK(read_script_rank(header + "{\"news\":1}\n[\"z\",1]\n").events.empty());
}

}  // namespace rollcall::traces::script_record_test
